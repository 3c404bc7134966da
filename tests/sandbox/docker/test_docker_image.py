"""The content of the image: its name, the packages, this machine's Python, the archive. No engine
is needed."""

from __future__ import annotations

import errno
import fcntl
import importlib.metadata
import io
import os
import py_compile
import subprocess
import sys
import tarfile
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker.build import tar_stream
from eureka_agent.sandbox.docker.cache import cache_lock
from eureka_agent.sandbox.docker.recipe import (
    Member,
    Recipe,
    current_recipe,
    image_members,
    keep_requirements,
    needed_libraries,
    pinned,
)

on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the image is made on Linux alone"
)
SITE = f"opt/eureka/lib/python3.{sys.version_info.minor}/site-packages"
Install = Callable[..., Path]


@on_linux
def test_the_tag_is_another_when_anything_that_goes_in_is(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tag(gpus: bool = False) -> str:
        return current_recipe(gpus, "some-package").tag

    assert Recipe(("a==1",), "x").tag != Recipe(("a==2",), "x").tag
    assert Recipe(("a==1",), "x").tag != Recipe(("a==1",), "y").tag
    install("some_package", "1.0", "x = 1")
    first = tag()
    assert first.startswith("eureka-worker:")
    assert tag() == first
    assert current_recipe(False, "").tag != first
    install("some_package", "1.0", "x = 2")  # the same version, other files
    second = tag()
    assert second != first
    install("mujoco_warp", "0.1")  # for a GPU alone
    assert (tag(), tag(gpus=True) == second) == (second, False)
    monkeypatch.setattr(sys, "version", "3.99.0")
    assert tag() != second


def test_pins_are_the_installed_versions_of_all_that_a_worker_requires() -> None:
    pins = dict(pin.split("==") for pin in pinned())
    assert {"torch", "numpy", "mujoco", "pydantic-core", "markupsafe", "sympy"} <= set(pins)
    for name in ("torch", "pydantic-core"):
        assert pins[name] == importlib.metadata.version(name)
    assert not {"openai", "anthropic", "litellm", "docker", "pytest", "matplotlib"} & set(pins)


def test_without_gpus_only_what_is_for_gpus_stays_out(install: Install) -> None:
    for name in ("mujoco_warp", "warp_lang", "imageio", "packaging"):
        install(name, "0.1")
    only_for_gpus = set(pinned(gpus=True)) - set(pinned(gpus=False))
    assert only_for_gpus == {"mujoco-warp==0.1", "warp-lang==0.1"}
    # environments of Gymnasium import these
    assert {"imageio==0.1", "packaging==0.1"} <= set(pinned(gpus=False))


@pytest.mark.parametrize("line", ["no-such-package-here", "numpy<1.0", "torch ==0.1  # old"])
def test_a_package_that_is_not_installed_is_named(line: str) -> None:
    with pytest.raises(WallError) as caught:
        pinned(f"# packages of mine\n\nattrs; python_version < '3'\n{line}\n")
    wanted = line.partition("#")[0].replace(" ", "")
    assert f"needs the package '{wanted}', and the version that is installed here" in str(
        caught.value
    )
    assert "install" in caught.value.hint


def test_what_workers_import_is_among_the_pins() -> None:
    script = (
        "import sys, importlib.metadata as metadata\nfrom eureka_agent.simulation.loading import"
        " load_environment\nimport eureka_agent.worker.serve,"
        " eureka_agent.simulation.gymnasium_task, eureka_agent.simulation.mujoco_task\nfor name in"
        " ('cartpole', 'ant'):\n    loaded = load_environment(name)\n   "
        " loaded.make(loaded.task(None)[1], 2).close()\nnames = {module.partition('.')[0] for"
        " module, found in sys.modules.items() if getattr(found, '__file__', None)}\nfound ="
        " metadata.packages_distributions()\nprint(*{name for module in names for name in"
        " found.get(module, ())})"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    )
    pins = {pin.partition("==")[0] for pin in pinned()}
    imported = {name.lower().replace("_", "-") for name in result.stdout.split()}
    # tqdm: torch does without it; coverage and the like: the tests' own
    assert imported - pins <= {"eureka-agent", "tqdm", "coverage", "pytest-cov"}


@pytest.mark.parametrize(
    "line", ["numpy >>> 2", "-r other.txt", "./folder", "scipy @ https://x/y.whl"]
)
def test_requirements_are_names_of_packages(tmp_path: Path, line: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"# further ones\nscipy>=1.14  # a comment\n{line}\n")
    command = [sys.executable, "-m", "eureka_agent.cli.main", "sandbox", "build"]
    result = subprocess.run(
        [*command, "--requirements", str(file)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert f"the line {line!r}" in result.stderr
    assert "Traceback" not in result.stderr


@on_linux
def test_requirements_are_kept_for_all_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert current_recipe(False) == current_recipe(False, "")
    keep_requirements("click\n")
    assert current_recipe(False) == current_recipe(False, "click")
    keep_requirements("")
    assert current_recipe(False) == current_recipe(False, "")
    (tmp_path / "cache" / "eureka-agent" / "requirements.txt").write_text("[1")
    with pytest.raises(WallError, match=r"the line '\[1'"):
        current_recipe(False)


def test_a_cache_without_locks_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(WallError, match="No locks"), cache_lock("build"):
        pass
    (tmp_path / "eureka-agent" / "requirements.txt").mkdir()
    with pytest.raises(WallError, match=r"requirements\.txt"):
        keep_requirements("")


def test_an_archive_holds_what_was_put_in(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(os.urandom(3_000_001))
    source.chmod(0o700)
    name = "a" * 90 + "/" + "ü" * 90 + "/c"
    members: dict[str, Member] = {"tmp": None, name: source, "b": b"12"}
    with tarfile.open(fileobj=io.BytesIO(b"".join(tar_stream(members)))) as archive:
        # a folder comes before what is in it, and everybody may enter it
        assert archive.getnames() == ["tmp", "a" * 90, "a" * 90 + "/" + "ü" * 90, name, "b"]
        assert [archive.getmember(found).mode for found in archive.getnames()] == [
            *(0o1777, 0o755, 0o755, 0o755, 0o644)
        ]
        assert {(member.uid, member.gid) for member in archive.getmembers()} == {(0, 0)}
        assert archive.getmember(name).mtime == int(source.stat().st_mtime)
        for found, content in ((name, source.read_bytes()), ("b", b"12")):
            member = archive.extractfile(found)
            assert member is not None
            assert member.read() == content


def test_a_file_that_cannot_be_read_is_an_error_and_no_archive(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(bytes(5_000_000))
    pieces = tar_stream({"x": source})
    next(pieces)
    source.write_bytes(b"")
    with pytest.raises(WallError, match=r"cannot read '.*/file'.* it became shorter"):
        list(pieces)
    source.unlink()
    with pytest.raises(WallError, match=r"cannot read '.*/file'.* there is no such file"):
        list(tar_stream({"x": source}))


@on_linux
def test_the_image_is_this_python_with_its_libraries_and_little_else() -> None:
    members = image_members(Recipe((), ""))
    executable = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    assert members["opt/eureka/bin/python"] == executable
    assert members["opt/eureka/pyvenv.cfg"] == f"home = {executable.parent}\n".encode()
    assert members["tmp"] is None
    assert any(name.endswith("/os.py") for name in members)
    assert any(
        name.endswith("/__pycache__/os.cpython-" + suffix)
        for name in members
        for suffix in [f"3{sys.version_info.minor}.pyc"]
    )
    libraries = [name for name in members if name.startswith("opt/eureka/lib/")]
    assert any(
        name.startswith(("opt/eureka/lib/libm.so", "opt/eureka/lib/libc.")) for name in libraries
    )
    # the loader is where programs name it
    assert any("/ld-" in f"/{name}" for name in members if name.startswith("lib"))
    assert not [
        name for name in members if name.endswith(("/sh", "/bash")) or "site-packages/" in name
    ]


@on_linux
def test_of_a_package_goes_in_what_a_worker_opens(install: Install) -> None:
    unused = ("torch/include/x.h", "torch/test/x.py", "torch/bin/test_api", "../../../bin/torchrun")
    used = ("torch/testing/x.py", "torch/bin/torch_shm_manager", "torch/__init__.py")
    site = install("torch", "0.1", "", (*unused, *used))
    py_compile.compile(str(site / "torch" / "__init__.py"))
    (site / "torch" / "stray.py").write_text("")  # of no package
    names = {name for name in image_members(Recipe(("torch==0.1",), "")) if "torch" in name}
    compiled = cache_from_source("torch/__init__.py")  # without it every worker compiles
    assert names == {f"{SITE}/{name}" for name in (*used, compiled, "torch.py")}


@on_linux
@pytest.mark.parametrize("fault", ["editable", "no list"])
def test_a_package_whose_files_are_not_known_is_named(install: Install, fault: str) -> None:
    information = install("some_package", "1.0") / "some_package-1.0.dist-info"
    if fault == "editable":
        (information / "direct_url.json").write_text(
            '{"url": "file:///x", "dir_info": {"editable": true}}'
        )
    else:
        (information / "RECORD").unlink()
    with pytest.raises(WallError, match=r"package 'some-package==1\.0'.* its files are not known"):
        image_members(Recipe(("some-package==1.0",), ""))


@on_linux
def test_a_machine_without_ldd_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(WallError, match="'ldd': there is no such file") as caught:
        needed_libraries([Path(sys.executable)])
    assert "libc-bin" in caught.value.hint


def test_a_gpus_driver_stays_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of it would be older than the kernel's part after the next update."""
    lines = [
        "\tlinux-vdso.so.1 (0x00007ffc)",
        "\tlibcuda.so.1 => /usr/lib/x86_64-linux-gnu/libcuda.so.1 (0x00007f00)",
        "\tlibnvidia-ml.so.1 => /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1 (0x00007f00)",
        "\tlibmissing.so => not found",
        "\tlibc.so.6 => /conda/bin/../lib/libc.so.6 (0x00007f00)",
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f00)",
    ]
    program = tmp_path / "ldd"
    program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert needed_libraries([Path("/x")]) == {
        "opt/eureka/lib/libc.so.6": Path("/conda/lib/libc.so.6"),
        "lib64/ld-linux-x86-64.so.2": Path("/lib64/ld-linux-x86-64.so.2"),
    }


def test_another_system_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(WallError, match="'darwin'"):
        current_recipe(False, "")

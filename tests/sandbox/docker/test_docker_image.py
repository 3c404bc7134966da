"""What goes into the image: its name, the wheels, the base made of this machine's Python. No engine
is needed."""

from __future__ import annotations

import errno
import fcntl
import importlib.metadata
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker.archive import Entry, tar_stream
from eureka_agent.sandbox.docker.build_log import BuildLog
from eureka_agent.sandbox.docker.cache import cache_lock
from eureka_agent.sandbox.docker.host_base import base_files, base_tag, host_identity
from eureka_agent.sandbox.docker.image import Choice, Recipe, choice_file, keep_choice, read_choice
from eureka_agent.sandbox.docker.packages import OPTIONAL_ROOTS, ROOTS, pinned
from eureka_agent.sandbox.docker.wheelhouse import choose, fill

RECIPE = Recipe("FROM x", "print()", "host", "abc", ("numpy==2.0.0", "torch==2.13.0+cpu"))


def make_wheel(folder: Path, name: str, version: str) -> Path:
    """A wheel that pip installs: one module."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"version = {version!r}\n")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path


@pytest.mark.parametrize(
    "changed",
    [
        {"dockerfile": "FROM x\nUSER 0"},
        {"install": "print(1)"},
        {"base": "python:3.11-slim"},
        {"base_identity": "abd"},
        {"pins": ("numpy==2.0.1", "torch==2.13.0+cpu")},
        {"pins": ("numpy==2.0.0", "torch==2.13.0")},
        {"requirements": "scipy"},
        {"python": "3.12"},
    ],
)
def test_the_tag_is_another_when_anything_that_goes_in_is(changed: dict[str, object]) -> None:
    assert RECIPE.tag == replace(RECIPE).tag
    assert replace(RECIPE, **changed).tag != RECIPE.tag
    assert RECIPE.tag.startswith("eureka-worker:")


def test_pins_are_the_installed_versions_of_all_that_a_worker_requires() -> None:
    pins = dict(pin.split("==") for pin in pinned())
    assert {"torch", "numpy", "mujoco", "pydantic-core", "markupsafe", "sympy"} <= set(pins)
    for name in ("torch", "pydantic-core"):
        assert pins[name] == importlib.metadata.version(name)
    assert not {"openai", "anthropic", "litellm", "docker", "pytest", "matplotlib"} & set(pins)
    assert set(pinned(optional=())) <= set(pinned(optional=OPTIONAL_ROOTS))


def test_a_package_that_is_not_installed_is_named() -> None:
    with pytest.raises(WallError, match="'no-such-package-here'"):
        pinned((*ROOTS, "no-such-package-here"))


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


def test_a_wheelhouse_is_chosen_from_without_a_network(tmp_path: Path) -> None:
    wheel, pip = make_wheel(tmp_path, "some_package", "1.0"), make_wheel(tmp_path, "pip", "23.0")
    other = make_wheel(tmp_path, "more", "2.0")
    assert choose(tmp_path, ["some-package==1.0"], "") == ([wheel], pip)
    assert choose(tmp_path, ["some-package==1.0"], "more") == ([wheel, other], pip)
    with pytest.raises(WallError, match=r"no wheel of some-package==1.0\+cpu") as caught:
        choose(tmp_path, ["some-package==1.0+cpu"], "")
    assert "--download-only" in caught.value.hint


def test_wheels_for_another_python_are_as_good_as_none(tmp_path: Path) -> None:
    make_wheel(tmp_path, "pip", "23.0")
    wheel = make_wheel(tmp_path, "some_package", "1.0")
    other = wheel.rename(wheel.with_name("some_package-1.0-cp27-cp27m-win32.whl"))
    with pytest.raises(
        WallError, match=r"no wheel of some-package==1.0 for Python 3\.\d+ and this system"
    ):
        choose(tmp_path, ["some-package==1.0"], "")
    wheel = make_wheel(tmp_path, "some_package", "1.0")
    (tmp_path / "download.whl").write_bytes(b"")
    assert choose(tmp_path, ["some-package==1.0"], "some-package")[0] == [wheel]
    assert other.exists()
    with pytest.raises(WallError, match="there is no wheelhouse") as caught:
        choose(tmp_path / "nowhere", ["some-package==1.0"], "")
    assert "--download-only" in caught.value.hint


@pytest.mark.parametrize(
    "line", ["numpy >>> 2", "-r other.txt", "./folder", "scipy @ https://x/y.whl"]
)
def test_requirements_are_names_of_packages(tmp_path: Path, line: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"# further ones\nscipy>=1.14  # a comment\n{line}\n")
    command = [
        sys.executable,
        "-m",
        "eureka_agent.cli.main",
        "sandbox",
        "build",
        "--download-only",
        str(tmp_path),
    ]
    result = subprocess.run(
        [*command, "--requirements", str(file)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert f"has the line {line!r}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_failed_build_is_told_by_pips_words_and_not_by_the_engines() -> None:
    log = BuildLog()
    streams = [
        *(
            "Step 1/9 : FROM x",
            "\n",
            " ---> 0123456789ab\n",
            "FOUND: Python 3.11.2 and glibc 2.36\n",
            "Looking in links\n",
        ),
        *("INSTALLS: requirements\n", "\x1b[91mERROR: Cannot install numpy<2 because ...\n\x1b[0m"),
        *(
            "The conflict is caused by:\n",
            "    The user requested numpy<2\n",
            "    The user requested (constraint) numpy==2\n",
        ),
        *(
            "\x1b[91mERROR: ResolutionImpossible: for help visit ...\n\x1b[0m",
            "Removing intermediate container 1\n",
        ),
    ]
    log.follow(
        [
            *({"stream": stream} for stream in streams),
            {"error": "The command returned a non-zero code: 1"},
        ]
    )
    causes = "The user requested numpy<2; The user requested (constraint) numpy==2"
    assert log.error == f"ERROR: Cannot install numpy<2 because ...; {causes}"
    assert (log.found, log.installs, log.layers) == (
        "Python 3.11.2 and glibc 2.36",
        "requirements",
        ["0123456789ab"],
    )


def test_a_wheelhouse_is_filled_by_this_machines_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, house = tmp_path / "index", tmp_path / "house"
    index.mkdir()
    make_wheel(index, "eureka_test_package", "1.0+cpu")
    make_wheel(index, "eureka_test_other", "3.0")
    make_wheel(index, "pip", importlib.metadata.version("pip"))
    for name, value in (
        ("PIP_NO_INDEX", "1"),
        ("PIP_FIND_LINKS", str(index)),
        ("PIP_CONFIG_FILE", os.devnull),
    ):
        monkeypatch.setenv(name, value)
    fill(house, ["eureka-test-package==1.0+cpu"], "eureka-test-other")
    wheels, pip = choose(house, ["eureka-test-package==1.0+cpu"], "eureka-test-other")
    assert [wheel.name.split("-")[0] for wheel in wheels] == [
        "eureka_test_package",
        "eureka_test_other",
    ]
    assert pip.name.startswith("pip-")
    with pytest.raises(WallError, match="eureka-test-package==2"):
        fill(house, ["eureka-test-package==2.0"], "")
    with pytest.raises(
        WallError, match=r"requested \(constraint\) eureka-test-package==1.0"
    ) as caught:
        fill(house, ["eureka-test-package==1.0+cpu"], "eureka-test-package>2")
    assert "--requirements" in caught.value.hint


def test_a_disk_that_is_full_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(WallError, match="nowhere"):
        fill(tmp_path / "house", ["eureka-test-package==1.0"], "")

    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(WallError, match="No locks"), cache_lock("build"):
        pass


def test_a_choice_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert read_choice() == Choice()
    keep_choice(Choice("python:3.11-slim", "scipy>=1.14"))
    assert read_choice() == Choice("python:3.11-slim", "scipy>=1.14")
    choice_file().write_text("[1")
    with pytest.raises(WallError, match="cannot read"):
        read_choice()


def test_an_archive_holds_what_was_put_in(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(os.urandom(3_000_001))
    name = "a" * 90 + "/" + "ü" * 90
    entries = [
        Entry("a"),
        Entry(name, source=source, mode=0o755),
        Entry("b", data=b"12"),
        Entry("c", link="/b"),
    ]
    with tarfile.open(fileobj=io.BytesIO(b"".join(tar_stream(entries)))) as archive:
        assert archive.getnames() == ["a", name, "b", "c"]
        member = archive.extractfile(name)
        assert member is not None
        assert member.read() == source.read_bytes()
        assert (archive.getmember(name).mode, archive.getmember("c").linkname) == (0o755, "/b")


def test_a_file_that_shrinks_is_an_error_and_no_archive(tmp_path: Path) -> None:
    source = tmp_path / "file"
    source.write_bytes(bytes(5_000_000))
    pieces = tar_stream([Entry("x", source=source)])
    next(pieces)
    source.write_bytes(b"")
    with pytest.raises(OSError, match="shorter"):
        list(pieces)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the base image is made on Linux alone"
)
def test_the_base_is_this_python_with_its_libraries_and_little_else() -> None:
    entries, settings = base_files(())
    names = [entry.name for entry in entries]
    assert len(names) == len(set(names))
    executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable)).lstrip("/")
    assert executable in names
    assert any(name.endswith("/os.py") for name in names)
    assert any("/libm.so" in name for name in names) or any("/libc." in name for name in names)
    assert {entry.name: entry.mode for entry in entries}["tmp"] == 0o1777
    assert not [
        name for name in names if name.endswith(("/sh", "/bash")) or "site-packages/" in name
    ]
    # every member's folder comes before it
    seen: set[str] = set()
    for name in names:
        parent = os.path.dirname(name)
        assert not parent or parent in seen
        seen.add(name)
    assert settings[0] == "ENV PATH=/usr/local/bin"
    assert base_tag(host_identity(), ["a==1"]) != base_tag(host_identity(), ["a==2"])

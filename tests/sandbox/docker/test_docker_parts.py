"""The parts of the Docker wall that need no engine: refusals, options, markers, mounts, endings."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import eureka_agent
from eureka_agent.boundary.profile import profile_text
from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker import container
from eureka_agent.sandbox.docker.container import (
    Surroundings,
    container_options,
    image_archive,
    mount_sources,
)
from eureka_agent.sandbox.docker.engine import _check, connect
from eureka_agent.sandbox.docker.markers import Marker, dead_markers, is_gone, this_driver
from eureka_agent.sandbox.docker.wall import _check_python, ending_of
from eureka_agent.sandbox.wall import Limits
from eureka_agent.sandbox.worker_environment import ReadableFiles, check_readable, readable_files


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("tcp://10.0.0.1:2375", "must be on this machine"),
        ("ssh://somebody@somewhere", "must be on this machine"),
        ("/var/run/docker.sock", "no address of a socket"),
        ("unix:///nowhere/docker.sock", "there is no socket '/nowhere/docker.sock'"),
    ],
)
def test_engines_that_cannot_be_used_are_refused_in_one_line(host: str, message: str) -> None:
    with pytest.raises(WallError) as caught:
        connect({"DOCKER_HOST": host})
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder whose path is short: that of a socket has at most 107 bytes, wherever the tests
    run."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", None])
def test_an_engine_that_talks_nonsense_or_nothing_is_one_line(
    tmp_path: Path, answer: bytes | None
) -> None:
    path = str(tmp_path / "docker.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        held = []

        def serve() -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                if answer is None:
                    held.append(connection)
                    continue
                with connection:
                    if connection.recv(1 << 16):
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(WallError) as caught:
            connect({"DOCKER_HOST": f"unix://{path}"}, timeout_s=0.5)
        listener.shutdown(socket.SHUT_RDWR)
    assert "\n" not in caught.value.message
    assert "Docker engine" in caught.value.message


def test_without_its_profile_of_system_calls_there_is_no_wall(tmp_path: Path) -> None:
    """The engine's own profile is wider."""
    with pytest.raises(WallError, match=r"seccomp\.json"):
        profile_text(tmp_path / "seccomp.json")


def test_an_engine_in_another_machine_has_not_the_worker_s_files() -> None:
    own = {"MemoryLimit": True, "PidsLimit": True, "KernelVersion": os.uname().release}
    _check(own, "unix:///x")
    with pytest.raises(WallError, match=r"kernel '6\.6\.16-linuxkit'") as caught:
        _check(own | {"KernelVersion": "6.6.16-linuxkit"}, "unix:///x")
    assert "Docker Desktop" in caught.value.hint
    with pytest.raises(WallError, match="cannot limit memory"):
        _check(own | {"MemoryLimit": False}, "unix:///x")


def test_a_python_that_only_its_owner_may_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker in a container runs as nobody."""
    _check_python()
    python = tmp_path / "python"
    python.touch(mode=0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(WallError, match=f"cannot read '{python}'") as caught:
        _check_python()
    assert f"chmod -R a+rX '{sys.prefix}'" in caught.value.hint


def surroundings(**changed: object) -> Surroundings:
    given: dict[str, object] = {
        "image": "image",
        "labels": {},
        "sources": {Path("/a"): Path("/b")},
        "seccomp": '{"x": 1}',
        "engine_cores": 4,
    }
    return Surroundings(**(given | changed))  # type: ignore[arg-type]


def test_options_of_a_container() -> None:
    limits = Limits(memory_bytes=1 << 30, cores=(2, 3))
    options = container_options("name", limits, surroundings())
    assert options["mem_limit"] == options["memswap_limit"] == 1 << 30
    assert (options["cpuset_cpus"], "nano_cpus" in options) == ("2,3", False)
    assert options["security_opt"] == ["no-new-privileges", 'seccomp={"x": 1}']
    assert [
        (mount["Target"], mount["Source"], mount["ReadOnly"]) for mount in options["mounts"]
    ] == [("/a", "/b", True)]
    assert options["mounts"][0]["BindOptions"] == {"Propagation": "rprivate", "NonRecursive": True}
    assert "--parent" not in options["command"]
    assert container_options("name", Limits(), surroundings())["nano_cpus"] == 4 * 10**9
    # an engine without that control group refuses the container
    assert "nano_cpus" not in container_options("name", Limits(), surroundings(engine_cores=None))


def test_a_container_is_given_nothing_that_it_needs_not() -> None:
    options = container_options("name", Limits(), surroundings())
    assert (options["network_mode"], options["ipc_mode"]) == ("none", "private")
    assert (options["cap_drop"], options["privileged"]) == (["ALL"], False)
    assert (options["user"], options["read_only"]) == ("65534:65534", True)
    assert all("noexec" in each and "size=" in each for each in options["tmpfs"].values())


@pytest.mark.parametrize(
    ("visible", "driver", "numbers", "variable"),
    [
        (None, None, "0123", None),
        ("", None, None, ""),
        ("1", None, "0", None),  # the second one on the bus
        ("GPU-c,0", None, "23", None),
        ("MIG-x", None, "0123", "MIG-x"),
    ],
)
def test_a_worker_has_the_device_files_of_its_gpus_alone(
    visible: str | None,
    driver: str | None,
    numbers: str | None,
    variable: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number, (bus, gpu, minor) in enumerate(
        [("01", "a", 3), ("41", "b", 0), ("81", "d", 1), ("c1", "c", 2)]
    ):
        (tmp_path / f"nvidia{number}").touch()
        information = tmp_path / "gpus" / f"0000:{bus}:00.0" / "information"
        information.parent.mkdir(parents=True)
        information.write_text(
            f"Model: \t\t NVIDIA H100\nIRQ:   \nGPU UUID: \t GPU-{gpu}\nDevice Minor: \t {minor}\n"
        )
    (tmp_path / "nvidiactl").touch()
    (tmp_path / "nvidia-uvm").touch()
    (tmp_path / "sda").touch()
    monkeypatch.setattr(container, "_DEVICES", tmp_path)
    monkeypatch.setattr(container, "_GPUS", tmp_path / "gpus")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if driver is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", driver)
    options = container_options("name", Limits(visible_gpu=visible), surroundings())
    names = [] if numbers is None else ["nvidia-uvm", *map("nvidia{}".format, numbers), "nvidiactl"]
    assert options["devices"] == [f"{tmp_path / each}:{tmp_path / each}:rw" for each in names]
    assert options["environment"].get("CUDA_VISIBLE_DEVICES") == variable


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ({"Running": False, "ExitCode": 0}, 0, ""),
        ({"Running": False, "ExitCode": 137}, -9, ""),
        (
            {"Running": False, "ExitCode": 137, "OOMKilled": True},
            -9,
            "more memory than its 1.0 GiB",
        ),
        ({"Running": False, "ExitCode": 127, "Error": "no python"}, 127, "no python"),
    ],
)
def test_endings(state: dict[str, object], code: int, words: str) -> None:
    ending = ending_of(state, 1 << 30)
    assert ending is not None
    assert ending.returncode == code
    assert words in ending.words
    assert ending_of({"Running": True}, 1) is None


def test_a_driver_is_gone_when_its_process_is_and_not_before() -> None:
    me = this_driver()
    assert not is_gone(me)
    assert is_gone(me | {"pid": "4194303"})
    assert is_gone(me | {"started": "1"})  # the number is another process's now
    assert is_gone(me | {"boot": "another"})
    assert not is_gone(me | {"namespace": "another"})
    assert not is_gone(me | {"machine": "another"})
    assert not is_gone({})


def test_a_marker_is_dead_when_its_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = (
        "from eureka_agent.sandbox.docker.markers import Marker\nimport time\n"
        "Marker('unix:///x').put()\nprint('there', flush=True)\ntime.sleep(60)"
    )
    assert dead_markers() == []
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    (file,) = (tmp_path / "eureka-agent" / "drivers").iterdir()
    (file.parent / "half.json").write_text(file.read_text()[:20])
    assert dead_markers() == []
    process.kill()
    process.wait()
    assert dead_markers() == [(file, "unix:///x")]
    marker = Marker("unix:///y")
    marker.put()
    marker.take_away()
    marker.take_away()
    assert sorted(file.parent.iterdir()) == sorted([file, file.parent / "half.json"])


def test_files_that_a_worker_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(eureka_agent.__file__).parent
    modules, environment = tmp_path / "modules", tmp_path / "modules" / "environment"
    environment.mkdir(parents=True)
    paths = [str(modules), "/nowhere", str(package.parent)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    files = readable_files(Limits(readable=(environment,)))
    assert {Path("/usr"), package, modules.resolve()} <= set(files.bound)
    assert environment.resolve() not in files.bound  # it is in the other
    assert package.parent not in files.bound  # runs may lie there
    assert not any(Path.home().is_relative_to(path) for path in files.bound)
    assert {package, modules.resolve()} <= files.own
    assert not {Path("/usr"), Path(sys.base_prefix).resolve()} & files.own
    everything = tmp_path / "everything"
    everything.symlink_to("/")
    monkeypatch.delenv("PYTHONPATH")
    for folder in ("/", "//", str(everything)):
        with pytest.raises(WallError, match=f"the folder '{folder}'"):
            check_readable(Limits(readable=(Path(folder),)))
    for folder in ("/", "//", str(everything)):
        monkeypatch.setenv("PYTHONPATH", folder)
        with pytest.raises(WallError, match=f"the folder '{folder}'"):
            check_readable(Limits())


def test_an_image_has_links_and_their_folders_and_no_file() -> None:
    files = ReadableFiles(
        bound=(Path("/usr"),),
        own=frozenset(),
        links=((Path("/bin"), "usr/bin"), (Path("/disk/ü/python"), "../x")),
        passed=(Path("/disk/y"),),
    )
    with tarfile.open(fileobj=io.BytesIO(image_archive(files))) as archive:
        found = {member.name: member for member in archive.getmembers()}
    assert {name: member.linkname for name, member in found.items() if member.issym()} == {
        "bin": "usr/bin",
        "disk/ü/python": "../x",
    }
    # the engine makes missing folders so that nobody may enter them
    assert {name: member.mode for name, member in found.items() if member.isdir()} == {
        "tmp": 0o1777,
        "disk": 0o755,
        "disk/ü": 0o755,
        "disk/y": 0o755,
    }
    assert list(found).index("disk/ü") < list(found).index("disk/ü/python")
    assert not any(member.isfile() for member in found.values())
    assert {(member.uid, member.mtime) for member in found.values()} == {(0, 0)}


def test_only_a_folder_with_something_private_is_copied(tmp_path: Path) -> None:
    environment, copies = tmp_path / "environment", tmp_path / "copies"
    environment.mkdir(mode=0o755)
    copies.mkdir()
    file = environment / "env.py"
    file.write_text("x")
    file.chmod(0o644)
    (environment / "link").symlink_to("/etc/shadow")
    files = ReadableFiles((Path("/usr"), environment), frozenset({environment}), (), ())
    open_ones = {Path("/usr"): Path("/usr"), environment: environment}
    assert mount_sources(files, copies) == open_ones
    file.chmod(0o600)
    # of what is not the user's own nothing is copied
    assert mount_sources(replace(files, own=frozenset()), copies) == open_ones
    source = mount_sources(files, copies)[environment]
    assert source.parent == copies
    assert (source / "env.py").stat().st_mode & 0o777 == 0o644
    assert (source / "link").is_symlink()

"""The parts of the Docker wall that need no engine: refusals, options, markers, mounts, endings."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker import build, wall
from eureka_agent.sandbox.docker.container import Surroundings, container_options
from eureka_agent.sandbox.docker.engine import Engine, _host, connect
from eureka_agent.sandbox.docker.handle import DockerHandle, Ending, ending_of
from eureka_agent.sandbox.docker.markers import Marker, dead_markers, is_gone, this_driver
from eureka_agent.sandbox.docker.mounts import Folder, prepare, readable_folders
from eureka_agent.sandbox.docker.recipe import Recipe
from eureka_agent.sandbox.readable import package_parent, python_path
from eureka_agent.sandbox.wall import Limits


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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_engine_of_ones_own_is_taken_where_the_one_for_all_may_not_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, own = tmp_path / "system.sock", tmp_path / "docker.sock"
    monkeypatch.setattr("eureka_agent.sandbox.docker.engine._SYSTEM_SOCKET", str(system))
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.bind(str(system))
        second.bind(str(own))
    system.chmod(0)
    own.chmod(0o666)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(folder.stat().st_mode | 0o055)
    child = os.fork()
    if child == 0:  # root may use everything
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            os._exit(0 if _host({"XDG_RUNTIME_DIR": str(tmp_path)}) == f"unix://{own}" else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_a_dead_engines_socket_says_so(tmp_path: Path) -> None:
    path = str(tmp_path / "docker.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
    with pytest.raises(WallError, match="no Docker engine answers"):
        connect({"DOCKER_HOST": f"unix://{path}"})


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", None]
)
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


VERSION = b'{"ApiVersion": "1.41"}'


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "went away"),
        (b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n{"st\r\n', "went away"),
        (b'HTTP/1.1 500 No\r\nContent-Length: 14\r\n\r\n{"message": 1}', "refused"),
        (
            b'HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n{"error": "no space left on device"}\r\n',
            "refused: no space left on device",
        ),
    ],
    ids=["goes away", "goes away in the middle", "refuses", "refuses at the end"],
)
def test_an_engine_that_fails_in_a_build_is_named_in_one_line(
    answer: bytes, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of this machine is named, although its failure would look the same: the SDK's errors
    are OSErrors."""
    monkeypatch.setattr(build, "image_members", lambda recipe: {"x": Path(__file__)})
    path = str(tmp_path / "docker.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                with connection:
                    request = connection.recv(1 << 16)
                    if request.startswith(b"GET /version"):
                        head = (
                            f"HTTP/1.1 200 OK\r\nContent-Length: {len(VERSION)}\r\nConnection:"
                            " close\r\n\r\n"
                        )
                        connection.sendall(head.encode() + VERSION)
                    else:
                        while request.startswith(b"POST") or not request.endswith(b"\r\n\r\n"):
                            if not request or request.endswith(b"0\r\n\r\n"):
                                break
                            request = connection.recv(1 << 16)
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        engine = Engine(
            docker.DockerClient(base_url=f"unix://{path}", version="1.41"), f"unix://{path}", {}
        )
        with pytest.raises(WallError) as caught:
            build._build(engine, Recipe((), ""))
        engine.close()
        listener.shutdown(socket.SHUT_RDWR)
    assert f"the Docker engine {message}" in caught.value.message.replace(
        f"at '{engine.host}' ", ""
    )
    assert "\n" not in caught.value.message


def test_without_its_profile_of_system_calls_there_is_no_wall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's own profile is wider."""
    monkeypatch.setattr(wall, "worker_profile", lambda: tmp_path / "seccomp.json")
    with pytest.raises(WallError, match=r"seccomp\.json"):
        wall._seccomp_profile()


def surroundings(**changed: object) -> Surroundings:
    given: dict[str, object] = {
        "image": "image",
        "labels": {},
        "folders": [Folder(Path("/a"), Path("/b"))],
        "python_path": [Path("/p")],
        "seccomp": '{"x": 1}',
        "engine_cores": 4,
        "gpus": (),
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
    assert "device_requests" not in options
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
    ("visible", "otherwise", "expected"),
    [
        ("1", (), (0, ["1"])),
        ("GPU-5", None, (0, ["GPU-5"])),
        (None, None, (-1, [])),
        (None, ("0", "2"), (0, ["0", "2"])),
    ],
)
def test_gpus_of_a_container(
    visible: str | None,
    otherwise: tuple[str, ...] | None,
    expected: tuple[int, list[str]],
    tmp_path: Path,
) -> None:
    limits = Limits(visible_gpu=visible, kernels=tmp_path)
    options = container_options("name", limits, surroundings(gpus=otherwise))
    (request,) = options["device_requests"]
    assert ((request["Count"] or 0), (request["DeviceIDs"] or [])) == expected
    assert options["command"][-2:] == ["--kernels", "/kernels"]
    assert options["mounts"][-1]["Target"] == "/kernels"
    assert "CUDA_VISIBLE_DEVICES" not in options["environment"]


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ({"Running": False, "ExitCode": 0}, 0, ""),
        ({"Running": False, "ExitCode": 3}, 3, ""),
        ({"Running": False, "ExitCode": 137}, -9, ""),
        ({"Running": False, "ExitCode": 139}, -11, ""),
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


async def test_who_writes_to_an_engine_that_hangs_is_let_go_when_it_is_over() -> None:
    async def look() -> Ending | None:
        return None

    async def kill() -> None:
        pass

    ours, theirs = socket.socketpair()
    with theirs:
        handle = DockerHandle("x", ours, look, kill)
        await handle.begin()
        writing = asyncio.create_task(handle.write(b"x" * (8 << 20)))
        assert not (await asyncio.wait({writing}, timeout=0.2))[0]
        await handle.finish()
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(writing, 5.0)


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
    with dead_markers() as found:
        assert found == []
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with dead_markers() as found:
        assert found == []
    process.kill()
    process.wait()
    with dead_markers() as found:
        assert [(host, driver["pid"]) for _, host, driver in found] == [
            ("unix:///x", str(process.pid))
        ]
        with dead_markers() as again:
            assert again == []  # somebody is at it
    marker = Marker("unix:///y")
    marker.put()
    marker.take_away()
    marker.take_away()
    assert len(list((tmp_path / "eureka-agent" / "drivers").iterdir())) == 1


def test_a_marker_that_is_taken_away_meanwhile_is_nobody_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its driver lives, and may have other containers by now: these would be removed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    marker = Marker("unix:///x")
    marker.put()
    lock = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        marker.take_away()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with dead_markers() as found:
        assert found == []


def test_a_marker_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Marker("unix:///x").put()
    (here,) = (tmp_path / "eureka-agent" / "drivers").iterdir()
    before = os.listdir("/proc/self/fd")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    Marker("unix:///y").put()
    assert list(here.parent.iterdir()) == [here]
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_command_looks_for_the_killed_without_the_docker_package(tmp_path: Path) -> None:
    script = (
        "import sys\nsys.argv = ['eureka', '--version']\nfrom eureka_agent.cli.main import"
        " main\ntry:\n    main()\nexcept SystemExit:\n    pass\nprint([name for name in ('docker',"
        " 'requests', 'asyncio', 'torch') if name in sys.modules])"
    )
    variables = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=variables, timeout=60
    )
    assert result.stdout.splitlines()[-1] == "[]"


def test_folders_that_a_worker_reads(tmp_path: Path) -> None:
    modules, environment = tmp_path / "modules", tmp_path / "modules" / "environment"
    environment.mkdir(parents=True)
    variables = {"PYTHONPATH": os.pathsep.join([str(modules), "/nowhere", str(package_parent())])}
    assert python_path(variables) == [modules]
    found = readable_folders([environment], variables)
    assert modules in found
    assert environment not in found  # it is in the other
    assert package_parent() / "eureka_agent" in found
    assert package_parent() not in found
    everything = tmp_path / "everything"
    everything.symlink_to("/")
    for folder in ("/", "//", str(everything)):
        with pytest.raises(WallError, match=f"the folder '{folder}'"):
            readable_folders([Path(folder)], {})
        with pytest.raises(WallError, match=f"the folder '{folder}'"):
            readable_folders([], {"PYTHONPATH": folder})


def test_only_a_folder_with_something_private_is_copied(tmp_path: Path) -> None:
    environment, copies = tmp_path / "environment", tmp_path / "copies"
    environment.mkdir(mode=0o755)
    copies.mkdir()
    file = environment / "env.py"
    file.write_text("x")
    file.chmod(0o644)
    (environment / "link").symlink_to("/etc/shadow")
    assert prepare([environment], copies) == [Folder(environment, environment)]
    file.chmod(0o600)
    (folder,) = prepare([environment], copies)
    assert folder.outside.parent == copies
    assert (folder.outside / "env.py").stat().st_mode & 0o777 == 0o644
    assert (folder.outside / "link").is_symlink()
    assert json.dumps(str(folder.inside)) == json.dumps(str(environment))

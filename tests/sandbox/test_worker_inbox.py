"""Everything that a worker sends is bounded, has a plain name, and is checked before anybody reads
it."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import struct
import time
import zipfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from safetensors.numpy import save

from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.array_files import MOST_TENSORS
from eureka_agent.boundary.bounds import MAX_FILE_BYTES, FileHeader
from eureka_agent.boundary.events import EVENT
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.sandbox import inbox as inboxes
from eureka_agent.sandbox.inbox import (
    Inbox,
    WorkerFileError,
    check_policy,
    check_state,
    check_trajectories,
)
from eureka_agent.training.evaluation import load_trajectories
from eureka_agent.training.members import load_snapshot
from eureka_agent.training.policy import load_policy


def pieces(content: bytes, size: int = 7) -> Callable[[int], Awaitable[bytes]]:
    """A stream that gives a few bytes at a time."""
    stream = io.BytesIO(content)

    async def read(most: int) -> bytes:
        return stream.read(min(most, size))

    return read


async def sent(inbox: Inbox, content: bytes, name: str = "a.bin") -> None:
    await inbox.receive(FileHeader(name=name, size=len(content)), pieces(content))


def nothing_wrong(path: Path) -> None:
    pass


async def test_a_file_is_taken_whole_and_once(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    await sent(inbox, b"x" * 1000)
    taken = await inbox.take("a.bin", tmp_path / "out" / "copy", nothing_wrong)
    assert taken.read_bytes() == b"x" * 1000
    with pytest.raises(WorkerFileError, match=r"named the file 'a.bin' and did not send it"):
        await inbox.take("a.bin", tmp_path / "again", nothing_wrong)
    assert list((tmp_path / "inbox").iterdir()) == []


async def test_half_a_file_is_none(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    await inbox.receive(FileHeader(name="a.bin", size=100), pieces(b"too short"))
    with pytest.raises(WorkerFileError, match="did not send it"):
        await inbox.take("a.bin", tmp_path / "copy", nothing_wrong)
    assert list((tmp_path / "inbox").iterdir()) == []


async def test_what_fails_its_check_is_nowhere(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "inbox")
    await sent(inbox, b"no tensors")
    with pytest.raises(WorkerFileError, match="broken safetensors"):
        await inbox.take("a.bin", tmp_path / "copy", check_state)
    assert not (tmp_path / "copy").exists()
    assert list((tmp_path / "inbox").iterdir()) == []


async def test_what_nobody_takes_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inboxes, "MOST_BYTES", 10)
    monkeypatch.setattr(inboxes, "MOST_FILES", 3)
    inbox = Inbox(tmp_path / "inbox")
    await sent(inbox, b"12345", "a")
    await sent(inbox, b"1234567890", "a")  # in the place of the other
    with pytest.raises(WorkerFileError, match="or 10 bytes, that nobody asked for"):
        await sent(inbox, b"1", "b")
    inbox.drop("a")
    for name in "bcd":
        await sent(inbox, b"1", name)
    with pytest.raises(WorkerFileError, match="more than 3 files"):
        await sent(inbox, b"1", "e")


async def test_a_file_that_cannot_be_stored_is_an_error_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EurekaError, match="is a file, expected a folder"):
        await sent(Inbox(tmp_path / "file" / "inbox"), b"1")


@pytest.mark.parametrize(
    "name", ["", "..", "../secret", "/etc/passwd", ".hidden", "a\0", "x" * 101, "-rf"]
)
def test_a_name_that_is_more_than_a_plain_one_is_no_file(name: str) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(json.dumps({"type": "file", "name": name, "size": 1}))


@pytest.mark.parametrize("size", [-1, MAX_FILE_BYTES + 1, "many"])
def test_a_size_that_is_none_is_no_file(size: object) -> None:
    with pytest.raises(ValidationError):
        EVENT.validate_json(json.dumps({"type": "file", "name": "a", "size": size}))


def test_a_policy_is_of_float32_tensors(tmp_path: Path) -> None:
    path = tmp_path / "policy"
    path.write_bytes(save({"policy.0.weight": np.zeros((2, 3), np.float32)}))
    check_policy(path)
    path.write_bytes(save({"policy.0.weight": np.zeros((2, 3), np.int64)}))
    with pytest.raises(WorkerFileError, match=r"whose 'policy.0.weight' is no tensor of float32"):
        check_policy(path)


def header_of(tensor: object) -> bytes:
    text = json.dumps({"a": tensor}).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack("<Q", 1 << 60),
        pickle.dumps({"a": 1}),
        header_of(
            {"dtype": "F32", "shape": [10**10], "data_offsets": [0, 4 * 10**10]}
        ),  # 40 GB that are not there
        header_of({"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}),
        header_of({"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}) + b"1234",
    ],
)
def test_what_is_no_safetensors_file_is_not_taken(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    for check in (check_state, check_policy):
        with pytest.raises(WorkerFileError, match="broken safetensors file"):
            check(path)


def test_a_pickle_in_disguise_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "episodes.npz"
    np.savez(path, allow_pickle=True, a=np.array([{"a": 1}], dtype=object))
    with pytest.raises(WorkerFileError, match="other than numbers"):
        check_trajectories(path)
    path.write_bytes(pickle.dumps([1]))
    with pytest.raises(WorkerFileError, match="broken npz"):
        check_trajectories(path)


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "episodes.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a.npy", "w") as file,
    ):
        for _ in range(600):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 4 << 20
    with pytest.raises(
        WorkerFileError, match=r"1 arrays of 629145600 bytes, expected at most 2000 of 536870912"
    ):
        check_trajectories(path)


def npy_of(shape: str, content: bytes = b"") -> bytes:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    "member", [npy_of("(10000000000,)", b"1234"), b"", npy_of("'a'"), npy_of("(2**40, 0)")]
)
def test_arrays_that_are_larger_than_what_is_there_are_refused(
    tmp_path: Path, member: bytes
) -> None:
    path = tmp_path / "episodes.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", member)
    with pytest.raises(WorkerFileError, match="broken npz"):
        check_trajectories(path)


def test_arrays_of_text_and_what_cannot_be_unpacked_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "episodes.npz"
    np.savez(path, a=np.array(["text"]))
    with pytest.raises(WorkerFileError, match="other than numbers"):
        check_trajectories(path)
    np.savez_compressed(path, a=np.arange(10_000))
    good = path.read_bytes()
    for place in range(100, len(good) - 300, 97):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        with pytest.raises(WorkerFileError, match="broken npz"):
            check_trajectories(path)


def empty_tensors(count: int) -> bytes:
    """A file whose header is all there is of it."""
    tensor = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    text = json.dumps({f"{number}": tensor for number in range(count)}).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "content",
    [
        empty_tensors(MOST_TENSORS * 2),
        struct.pack("<Q", 90 << 20) + b" " * (90 << 20),
        struct.pack("<Q", 12 << 20) + b"[" * (12 << 20),
        struct.pack("<Q", 12 << 20) + b'"' * (12 << 20),
        struct.pack("<Q", 12 << 20) + b'"' + b'\\"' * (6 << 20),
        struct.pack("<Q", 12 << 20) + b'{"a":{"dtype":"F32","shape":[' + b"0," * (6 << 20),
    ],
    ids=["tensors", "long", "nested", "names", "one name", "dimensions"],
)
def test_a_header_with_too_much_in_it_is_refused_before_it_is_read(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    for check in (check_state, check_policy):
        started = time.monotonic()
        with pytest.raises(WorkerFileError, match="broken safetensors file"):
            check(path)
        assert time.monotonic() - started < 3
    # the same rule reads the files of a run folder, perhaps a stranger's
    store = SnapshotStore(tmp_path)
    store.put_points("job", ())
    shutil.copyfile(path, store.state_path("job"))
    assert store.find("job") is None
    with pytest.raises(RunFolderError, match="cannot read the policy"):
        load_policy(path)
    with pytest.raises(RunFolderError, match="cannot read the snapshot"):
        load_snapshot(path)


def test_a_training_with_thousands_of_points_since_its_last_checkpoint_is_taken(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state"
    metadata = {"training": json.dumps([{"component": 1.5, "other": "a {b}, [c]"}] * 200_000)}
    path.write_bytes(
        save({f"state.{number}": np.zeros(3, np.float32) for number in range(1000)}, metadata)
    )
    assert path.stat().st_size > 8 << 20
    check_state(path)


def test_a_list_of_a_million_members_is_not_read(tmp_path: Path) -> None:
    """A zip's list of members is at its end, and has 46 bytes and a name for each."""
    path = tmp_path / "episodes.npz"
    member = b"PK\x01\x02" + bytes(24) + struct.pack("<HHH", 1, 0, 0) + bytes(12) + b"a"
    members = member * 1_000_000
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, len(members), 0, 0)
    path.write_bytes(members + end)
    assert len(member) == 47
    for refuse, error in (
        (check_trajectories, WorkerFileError),
        (load_trajectories, RunFolderError),
        (read_trajectories, RunFolderError),
    ):
        started = time.monotonic()
        with pytest.raises(error, match="parts that are longer"):
            refuse(path)
        assert time.monotonic() - started < 1


FITTING = {
    "observation_mean": (3,),
    "observation_deviation": (3,),
    "log_std": (2,),
    "policy.0.weight": (3, 4),
    "policy.0.bias": (1, 4),
    "policy.1.weight": (4, 2),
    "policy.1.bias": (1, 2),
}


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("policy.0.weight", (0, 10**15)),
        ("log_std", None),
        ("log_std", (3,)),
        ("policy.1.weight", (5, 2)),
        ("policy.7.weight", (2, 2)),
    ],
)
def test_tensors_that_make_no_network_are_no_policy(
    tmp_path: Path, name: str, shape: tuple[int, ...] | None
) -> None:
    path = tmp_path / "policy.safetensors"

    def write(shapes: dict[str, tuple[int, ...]]) -> None:
        tensors = {each: np.zeros(size, np.float32) for each, size in shapes.items()}
        path.write_bytes(save(tensors, {"activation": "elu"}))

    write(FITTING)
    assert load_policy(path).layer_sizes == (3, 4, 2)
    write({each: size for each, size in {**FITTING, name: shape}.items() if size is not None})
    with pytest.raises(RunFolderError, match="holds no policy"):
        load_policy(path)

"""Bounds on untrusted files of arrays: libraries trust the sizes in a header. Episodes in files."""

from __future__ import annotations

import io
import itertools
import math
import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any

from eureka_agent import syntax
from eureka_agent.errors import EurekaError

ALL, NUMBER = "all", "episode"
"""In a file with all episodes of an evaluation: their name, under which each variable is one array,
and the array with the number of each step's episode."""
COMMAND_POLICY = "command_policy"
"""Only tensor in the file of a command's policy: the command's own file, as bytes."""
MOST_HEADER_BYTES = 16 << 20
"""Longest header of a safetensors file: about 100 bytes a tensor, and latest curve points."""
MOST_TENSORS = 10_000
MOST_ARRAY_BYTES = 512 << 20
MOST_ARRAYS = 2000
_MARKS_PER_TENSOR = 20
"""Names, braces, brackets and commas of one tensor in a header."""
_MARK = re.compile(rb'"(?:[^"\\]++|\\.?+)*+(?:"|\Z)|[{\[,]', re.DOTALL)
"""Unclosed names match too: a failed match would be retried at every quotation mark."""
_CHUNK_BYTES = 1 << 20


def open_tensors(path: Path, framework: str, device: str = "cpu") -> Any:
    """`safetensors.safe_open` for a bounded header. Raises OSError, SafetensorError."""
    from safetensors import safe_open

    check_tensor_header(path)
    return safe_open(path, framework=framework, device=device)


def check_tensor_header(path: Path) -> None:
    """Raises SafetensorError for a header that is too long or names too many tensors. The header is
    not parsed, since parsing takes the time."""
    from safetensors import SafetensorError

    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = file.read(size) if size <= MOST_HEADER_BYTES else b""
    if size > MOST_HEADER_BYTES:
        raise SafetensorError(f"a header of {size} bytes, expected at most {MOST_HEADER_BYTES}")
    most = _MARKS_PER_TENSOR * MOST_TENSORS
    if sum(1 for _ in itertools.islice(_MARK.finditer(header), most + 1)) > most:
        raise SafetensorError(f"a header with more in it than {MOST_TENSORS} tensors have")


class _ReadInParts(io.FileIO):
    """A file that is read in small parts only, so that a list of millions of members fails."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = _CHUNK_BYTES + 1 if size is None or size < 0 else min(size, _CHUNK_BYTES + 1)
        found = super().read(wanted) or b""
        if len(found) > _CHUNK_BYTES:
            raise ValueError(f"it has parts that are longer than {_CHUNK_BYTES} bytes")
        return found


def check_arrays(path: Path) -> None:
    """Read an npz file through, keeping nothing. Raises ValueError for anything but plain arrays of
    numbers, or too many, and the errors of zip, zlib and numpy for a broken file."""
    from numpy.lib import format as npy

    with zipfile.ZipFile(_ReadInParts(path)) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if len(members) > MOST_ARRAYS or size > MOST_ARRAY_BYTES:
            most = f"at most {MOST_ARRAYS} of {MOST_ARRAY_BYTES}"
            raise ValueError(f"{len(members)} arrays of {size} bytes, expected {most}")
        for member in members:
            with archive.open(member) as file:  # reads no more than the size that is declared
                is_first = npy.read_magic(file) == (1, 0)
                read = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
                with syntax.one_at_a_time():
                    shape, _, kind = read(file)
                # an array without numbers can have any length
                least = max(1, kind.itemsize) * math.prod(max(1, length) for length in shape)
                if kind.kind not in "biuf" or least > member.file_size:
                    name = member.filename[:100]
                    raise ValueError(f"{name!r} holds other than numbers, or less than it says")
                while file.read(_CHUNK_BYTES):  # to its checksum: later reads expect no error
                    pass


def command_policy(path: Path) -> bytes:
    """The command's own file in a policy's file. Raises EurekaError for another policy."""
    from safetensors.numpy import load_file

    arrays = load_file(path)
    if COMMAND_POLICY not in arrays:
        what = f"the policy {str(path)!r} is of this program's trainer, and of no command"
        raise EurekaError(what, "name a policy of a run on this environment")
    return arrays[COMMAND_POLICY].tobytes()


def read_episodes(
    file: Path | IO[bytes], variables: Collection[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Arrays by episode and variable of an npz that `check_arrays` has passed, named
    `<episode>/<variable>`; only these variables, where they are given. All episodes of an
    evaluation are named by their numbers. Nothing is unpickled."""
    import numpy as np

    episodes: dict[str, dict[str, Any]] = {}
    with np.load(file, allow_pickle=False) as arrays:
        for key in arrays.files:
            episode, _, variable = key.partition("/")
            if variables is None or variable in variables:
                with syntax.one_at_a_time():  # for its header
                    episodes.setdefault(episode, {})[variable] = arrays[key]
        if f"{ALL}/{NUMBER}" not in arrays.files:
            return episodes
        with syntax.one_at_a_time():
            numbers = arrays[f"{ALL}/{NUMBER}"]
    steps = {name: each for name, each in episodes.get(ALL, {}).items() if name != NUMBER}
    if numbers.ndim != 1 or any(each.shape[:1] != numbers.shape for each in steps.values()):
        raise ValueError("its arrays have not one row for each step")
    begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    return {
        str(numbers[begin]): {name: each[begin:end] for name, each in steps.items()}
        for begin, end in itertools.zip_longest(begins, begins[1:])
    }


def failed(episode: Mapping[str, Any]) -> bool:
    """True where an episode, arrays by variable, ended by a failure."""
    return _is_set_at_end(episode, "terminated")


def succeeded(episode: Mapping[str, Any]) -> bool:
    """True where an episode, arrays by variable, ended by a success."""
    return _is_set_at_end(episode, "succeeded")


def _is_set_at_end(episode: Mapping[str, Any], name: str) -> bool:
    return name in episode and bool(episode[name].reshape(-1)[-1:].any())

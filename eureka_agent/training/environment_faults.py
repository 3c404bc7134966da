"""Environment faults, told from a reward's and a machine's: exceptions, timeouts, a lack of memory,
a GPU that fails, and states that are not finite."""

from __future__ import annotations

import ast
import inspect
import re
import site
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch import Tensor

import eureka_agent
from eureka_agent import syntax
from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError
from eureka_agent.label_records import LONGEST_CAPTION, MOST_CODE
from eureka_agent.simulation.class_checks import own_classes
from eureka_agent.simulation.user_modules import (
    TimeLimitError,
    describe_error,
    place_of_function,
    time_limit,
)
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task

_NO_MEMORY = re.compile(
    r"can(?:'t|not) allocate memory|not enough memory|out of memory|unable to"
    r" allocate|MemoryError|bad_alloc",
    re.IGNORECASE,
)
_AMOUNT = re.compile(
    r"(?:tried to|unable to) allocate (\d+(?:\.\d+)?) (bytes|[KMGT]iB)", re.IGNORECASE
)
MEMORY_HINT = "lower --hidden-sizes, --num-envs, --horizon or --slots, or use more memory"
_NO_GPU = re.compile(r"\bcuda error\b", re.IGNORECASE)
_ASSERTION = "device-side assert"
"""An index out of bounds in somebody's code, on a sound device."""


def is_out_of_memory(error: BaseException | str) -> bool:
    """True for an error, or its message, that reports a lack of memory on system or device."""
    return isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)) is not None


def does_not_fit(what: str, error: BaseException) -> str:
    """Message for a lack of memory, with the size of the allocation if the error names it."""
    found = _AMOUNT.search(str(error))
    if found is None:
        return f"{what} does not fit into memory"
    amount, unit = float(found[1]), found[2]
    asked = f"{amount / 2**30:.3g} GiB" if unit == "bytes" else f"{found[1]} {unit}"
    return f"{what} does not fit into memory: {asked} were asked for in one piece"


def is_gpu_failure(error: BaseException) -> bool:
    """True for an error of the device or its driver, after which the process cannot use it."""
    text = str(error)
    if is_out_of_memory(error) or _ASSERTION in text:
        return False
    return isinstance(error, torch.AcceleratorError) or _NO_GPU.search(text) is not None


LARGEST = 1e18
"""Magnitude from which a state counts as broken: its square overflows float32."""
OBSERVATIONS = "observations"
STANDARD_ERROR = 2
RAISED_HINT = "mend this line of the environment"
_CAPTIONS_HINT = "see docs/your-own-environment.md#captions-of-states"
_VALUE_HINT = "guard divisions, roots and logarithms, and limit what the physics can reach"
_PACKAGE = Path(eureka_agent.__file__).parent
_SIMULATION = _PACKAGE / "simulation"
_INSTALLED = [_PACKAGE, *map(Path, {*sysconfig.get_paths().values(), *site.getsitepackages()})]


@contextmanager
def environment_code(
    cls: type[VecTask], limit_s: float | None = None, doing: str = "", setting: str = ""
) -> Iterator[None]:
    """Turn exceptions of an environment's code, but no lack of memory and no failure of a GPU, into
    EnvironmentFaultError. `limit_s`: timeout of the block; `doing`: its subject; `setting`: a flag
    behind it."""
    try:
        if limit_s is None:
            yield
        else:
            with time_limit(limit_s, STANDARD_ERROR):
                yield
    except TimeLimitError as error:
        what = f"{doing or 'the environment'} did not end within {error.seconds:g} s"
        what = f"{place_of_error(error, cls)}{what}"
        raise EnvironmentFaultError(what, _endless_hint(setting)) from None
    except EnvironmentLoadError as error:  # it names the place unless the author's code runs
        place = _place_of_last(_authors_frames(error, cls))
        raise EnvironmentFaultError(f"{place}{error.message}", error.hint) from None
    except (EnvironmentFaultError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # the author's code raised, or a base class that calls it
        bases = (_is_in(frame, [_SIMULATION]) for frame in _frames(error))
        own = _authors_frames(error, cls) or any(bases)
        if is_out_of_memory(error) or is_gpu_failure(error) or not own:
            raise
        place = place_of_error(error, cls) or f"{cls.__name__}: "
        raise EnvironmentFaultError(f"{place}{describe_error(error)}", RAISED_HINT) from None


@contextmanager
def loading_limit(limit_s: float) -> Iterator[None]:
    """Raise EnvironmentFaultError with file and line where loading takes longer than `limit_s`."""
    try:
        with time_limit(limit_s, STANDARD_ERROR):
            yield
    except TimeLimitError as error:
        what = f"{place_of_error(error)}it did not end within {error.seconds:g} s"
        raise EnvironmentFaultError(what, _endless_hint()) from None


def _endless_hint(setting: str = "") -> str:
    slow = "has to be made faster, as no setting raises this limit"
    slow = f"needs a larger {setting}" if setting else slow
    return f"look for an endless loop; an environment that is only slow {slow}"


def place_of_error(error: BaseException, cls: type[VecTask] | None = None) -> str:
    """`"<file>, line <n>, in <function>: "` in the environment's files, else in a library."""
    libraries = [frame for frame in _frames(error) if not _is_in(frame, [_PACKAGE])]
    return _place_of_last(_authors_frames(error, cls) or libraries)


def _place_of_last(frames: Sequence[traceback.FrameSummary]) -> str:
    last = frames[-1:]
    return "".join(f"{each.filename}, line {each.lineno}, in {each.name}: " for each in last)


def _authors_frames(
    error: BaseException, cls: type[VecTask] | None
) -> list[traceback.FrameSummary]:
    """Frames in the environment's folder, else in files of neither this nor another package."""
    frames, homes = _frames(error), [] if cls is None else own_folders(cls)
    own = [each for each in frames if _is_in(each, homes)]
    others = (each for each in frames if not _is_in(each, _INSTALLED))
    return own or [each for each in others if each.filename.endswith(".py")]


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Frames of an error; for a repeated timeout those of the first alarm."""
    while isinstance(error, TimeLimitError) and isinstance(error.__context__, TimeLimitError):
        error = error.__context__
    return list(traceback.extract_tb(error.__traceback__))


def _is_in(frame: traceback.FrameSummary, folders: Sequence[Path]) -> bool:
    return any(Path(frame.filename).is_relative_to(folder) for folder in folders)


def own_folders(cls: type[VecTask]) -> list[Path]:
    folders = []
    for each in own_classes(cls):
        with suppress(TypeError):  # a class without a file
            if file := inspect.getsourcefile(each):
                folders.append(Path(file).parent)
    return folders


# ── states that are not finite ────────────────────────────────────────────────────────────────────


def is_unsound(value: Tensor, dimensions: int = 1) -> Tensor:
    """Mark values that are not finite or too large. Shape: the first `dimensions`, bool."""
    unsound = (value.abs() < LARGEST).logical_not_()  # also where it is NaN
    return unsound.flatten(dimensions).any(dim=-1) if value.dim() > dimensions else unsound


def state_fault(
    cls: type[VecTask], name: str, value: Tensor, when: str, actions: Sequence[float] | None = None
) -> EnvironmentFaultError:
    """The error for a row's value. `name`: variable or `OBSERVATIONS`; `when`: in words."""
    flat = value.detach().flatten()
    column = int(is_unsound(flat.unsqueeze(-1)).nonzero()[0])
    variable = name.removeprefix(PREVIOUS_PREFIX)
    what = "observation" if name == OBSERVATIONS else f"variable {variable!r}"
    where = f", column {column}" if value.dim() else ""
    place = place_of_value(cls, name)
    shown = None if actions is None else [round(each, 3) for each in actions][:12]
    action = "" if shown is None else f" under the action {shown!r}"
    return EnvironmentFaultError(
        f"{place}the {what}{where} is {float(flat[column]):.4g} {when}{action}",
        f"{_VALUE_HINT}: no reward, no fitness and no policy can use such a state",
    )


def check_rows(
    cls: type[VecTask], values: Mapping[str, Tensor], when: Callable[[int], str], actions: Tensor
) -> None:
    """Raise the EnvironmentFaultError of the first unsound row. `values`: by name, shape (rows, …);
    `when`: a row's moment in words; `actions`: shape (rows, num_actions)."""
    for name, value in values.items():
        unsound = is_unsound(value)
        if bool(unsound.any()):
            row = int(unsound.nonzero()[0])
            raise state_fault(cls, name, value[row], when(row), actions[row].tolist())


def place_of_value(cls: type[VecTask], name: str) -> str:
    """Place of the line that names a variable where it is computed; else of the method."""
    method = "compute_observations" if name == OBSERVATIONS else "compute_variables"
    owner = next((each for each in own_classes(cls) if method in vars(each)), None)
    try:
        lines, first = inspect.getsourcelines(vars(owner)[method])
        tree = syntax.parsed(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):  # also without an owner
        return ""
    wanted = name.removeprefix(PREVIOUS_PREFIX)
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    line = [1, *(node.lineno for node in nodes if node.value == wanted)][-1]
    return f"{inspect.getsourcefile(owner)}, line {first + line - 1}: "  # type: ignore[arg-type]


def fitness_fault(task: Task) -> EnvironmentFaultError:
    """The error for a task's own fitness that is not finite on sound states."""
    return EnvironmentFaultError(
        f"{place_of_function(task.fitness)}the task's fitness became NaN or infinite on states that"
        " are numbers",
        "make the fitness finite for every state that the environment can reach: guard divisions,"
        " roots and logarithms",
    )


def checked_codes(codes: object, rows: int, cls: type[VecTask]) -> Tensor:
    """The codes of captions, int64, shape (rows,). Raises EnvironmentFaultError for others."""
    found = type(codes).__name__
    if isinstance(codes, Tensor):
        found = f"{codes.dtype} of shape {tuple(codes.shape)}"
        if codes.dtype == torch.int64 and codes.shape == (rows,):
            least, most = int(codes.min()), int(codes.max())
            if least >= 0 and most <= MOST_CODE:
                return codes
            found += f", {least} to {most}"
    raise EnvironmentFaultError(
        f"{place_of_function(cls.caption_codes)}caption_codes gave {found}, expected torch.int64 of"
        f" shape ({rows},), 0 to {MOST_CODE}",
        _CAPTIONS_HINT,
    )


def checked_caption(text: object, code: int, cls: type[VecTask]) -> str:
    """The words of a code. Raises EnvironmentFaultError for what is no line of text."""
    found = type(text).__name__
    if isinstance(text, str):
        if text.strip() and len(text) <= LONGEST_CAPTION and text.isprintable():
            return text
        found = f"{len(text)} characters, {text[:60]!r}"
    raise EnvironmentFaultError(
        f"{place_of_function(cls.caption)}caption({code}) gave {found}, expected a text of 1 to"
        f" {LONGEST_CAPTION} printable characters",
        _CAPTIONS_HINT,
    )

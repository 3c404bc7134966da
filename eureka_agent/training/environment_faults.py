"""Environment faults, told from a reward's: exceptions, timeouts and states that are not finite."""

from __future__ import annotations

import ast
import inspect
import site
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor

import eureka_agent
from eureka_agent import syntax
from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError
from eureka_agent.simulation.class_checks import own_classes
from eureka_agent.simulation.time_limit import TimeLimitError, calls_limited_to, patient_time_limit
from eureka_agent.simulation.user_modules import describe_error, place_of_function
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX, Task
from eureka_agent.training.gpu_failures import is_gpu_failure
from eureka_agent.training.memory import is_out_of_memory

LARGEST = 1e18
"""Magnitude from which a state counts as broken: its square overflows float32."""
OBSERVATIONS = "observations"
STANDARD_ERROR = 2
RAISED_HINT = "mend this line of the environment"
_VALUE_HINT = (
    "guard divisions, roots and logarithms of the environment, and limit what its physics can reach"
)
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
            with patient_time_limit(limit_s, STANDARD_ERROR):
                yield
    except TimeLimitError as error:
        what = f"{doing or 'the environment'} did not end within {error.seconds:g} s"
        raise EnvironmentFaultError(
            f"{place_of_error(error, cls)}{what}", _endless_hint(setting)
        ) from None
    except EnvironmentLoadError as error:  # it names the place unless the author's code runs
        place = _place_of_last(_authors_frames(error, cls))
        raise EnvironmentFaultError(f"{place}{error.message}", error.hint) from None
    except (EnvironmentFaultError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if is_out_of_memory(error) or is_gpu_failure(error) or not _is_to_blame(error, cls):
            raise
        place = place_of_error(error, cls) or f"{cls.__name__}: "
        raise EnvironmentFaultError(f"{place}{describe_error(error)}", RAISED_HINT) from None


@contextmanager
def loading_limit(limit_s: float, call_s: float) -> Iterator[None]:
    """Raise EnvironmentFaultError with file and line where loading takes longer than `limit_s`, or
    one trial step or reset of a Gymnasium environment longer than `call_s`."""
    try:
        with patient_time_limit(limit_s, STANDARD_ERROR), calls_limited_to(call_s):
            yield
    except TimeLimitError as error:
        place = place_of_error(error)
        raise EnvironmentFaultError(
            f"{place}it did not end within {error.seconds:g} s", _endless_hint()
        ) from None


def _endless_hint(setting: str = "") -> str:
    slow = (
        f"needs a larger {setting}"
        if setting
        else "has to be made faster, as no setting raises this limit"
    )
    return (
        f"look for a loop whose condition never comes true; an environment that is only slow {slow}"
    )


def _is_to_blame(error: BaseException, cls: type[VecTask]) -> bool:
    """True where the author's code raised, or a base class that calls it."""
    return bool(_authors_frames(error, cls)) or any(
        _is_in(frame, [_SIMULATION]) for frame in _frames(error)
    )


def place_of_error(error: BaseException, cls: type[VecTask] | None = None) -> str:
    """`"<file>, line <n>, in <function>: "` in the environment's files, else in a library."""
    libraries = [frame for frame in _frames(error) if not _is_in(frame, [_PACKAGE])]
    return _place_of_last(_authors_frames(error, cls) or libraries)


def _place_of_last(frames: Sequence[traceback.FrameSummary]) -> str:
    return "".join(
        f"{frame.filename}, line {frame.lineno}, in {frame.name}: " for frame in frames[-1:]
    )


def _authors_frames(
    error: BaseException, cls: type[VecTask] | None
) -> list[traceback.FrameSummary]:
    """Frames in the environment's folder, else in files of neither this nor another package."""
    frames, homes = _frames(error), [] if cls is None else own_folders(cls)
    return [frame for frame in frames if _is_in(frame, homes)] or [
        frame
        for frame in frames
        if frame.filename.endswith(".py") and not _is_in(frame, _INSTALLED)
    ]


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Frames of an error; for a repeated timeout those of the first alarm."""
    while isinstance(error, TimeLimitError) and isinstance(error.__context__, TimeLimitError):
        error = error.__context__
    return list(traceback.extract_tb(error.__traceback__))


def _is_in(frame: traceback.FrameSummary, folders: Sequence[Path]) -> bool:
    return any(Path(frame.filename).is_relative_to(folder) for folder in folders)


def own_folders(cls: type[VecTask]) -> list[Path]:
    """Folders of the source files of the author's classes."""
    return [
        Path(file).parent for each in own_classes(cls) if (file := _source_file(each)) is not None
    ]


def _source_file(cls: type) -> str | None:
    try:
        return inspect.getsourcefile(cls)
    except TypeError:  # a class without a file
        return None


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
    place = place_of_value(cls, name, column)
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


def place_of_value(cls: type[VecTask], name: str, column: int) -> str:
    """`"<file>, line <n>: "` of the line that computes a variable or an observation's column, as
    far as the source shows it; else of its method."""
    observation = name == OBSERVATIONS
    found = _method(cls, "compute_observations" if observation else "compute_variables")
    if found is None:
        return ""
    file, first, tree = found
    wanted = name.removeprefix(PREVIOUS_PREFIX)
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign if observation else ast.Constant)
        and (_writes(node, column) if isinstance(node, ast.Assign) else node.value == wanted)
    ]
    return f"{file}, line {first + (lines[-1] if lines else 1) - 1}: "


def fitness_fault(task: Task) -> EnvironmentFaultError:
    """The error for a task's own fitness that is not finite on sound states."""
    return EnvironmentFaultError(
        f"{place_of_function(task.fitness)}the task's fitness became NaN or infinite on states that"
        " are numbers",
        "make the fitness finite for every state that the environment can reach: guard divisions,"
        " roots and logarithms",
    )


def _method(cls: type[VecTask], name: str) -> tuple[str, int, ast.Module] | None:
    """File, first line and syntax tree of a method of the author's."""
    owner = next((each for each in own_classes(cls) if name in vars(each)), None)
    if owner is None:
        return None
    try:
        lines, first = inspect.getsourcelines(vars(owner)[name])
        tree = syntax.parsed(textwrap.dedent("".join(lines)))
        return str(inspect.getsourcefile(owner)), first, tree
    except (OSError, TypeError, SyntaxError):
        return None


def _writes(node: ast.Assign, column: int) -> bool:
    """True where it assigns to that column of `obs_buf`, as far as indices are literal."""
    for target in node.targets:
        if not (
            isinstance(target, ast.Subscript)
            and isinstance(target.value, ast.Attribute)
            and target.value.attr == "obs_buf"
            and isinstance(target.slice, ast.Tuple)
        ):
            continue
        index = target.slice.elts[-1]
        if isinstance(index, ast.Constant) and index.value == column:
            return True
        if isinstance(index, ast.Slice):
            low, high = (
                end.value if isinstance(end, ast.Constant) and isinstance(end.value, int) else other
                for end, other in ((index.lower, 0), (index.upper, column + 1))
            )
            if low <= column < high:
                return True
    return False

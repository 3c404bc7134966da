"""Import of an environment folder's Python files; errors name file and line."""

from __future__ import annotations

import faulthandler
import importlib
import importlib.util
import inspect
import itertools
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, ModuleType

from eureka_agent.environment_files import source_folders
from eureka_agent.errors import EnvironmentLoadError, EurekaError
from eureka_agent.invocation import command
from eureka_agent.libraries import mujoco_mismatch

_LOOKS = 10
"""Clock readings until a limit is over."""
_GRACE_SECONDS = 3.0
"""Time from the end of a limit to the exception on a busy machine, before the process is ended."""


class TimeLimitError(BaseException):
    """The limit passed. No `Exception`, so that generated code does not catch it by accident."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")
        self.seconds = seconds


@contextmanager
def time_limit(
    seconds: float, dump_file: int | None = None, end_process: bool = False
) -> Iterator[None]:
    """Raise TimeLimitError in the main thread's Python code after `seconds` in which the process
    ran (while stopped, by Ctrl-Z, the clock is read once); repeatedly, in case it is swallowed. An
    outer limit continues. In a call that never ends, Python's stack is written to the descriptor
    `dump_file`, and with `end_process` the process ends."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    looks = 0

    def look(signal_number: int, frame: FrameType | None) -> None:
        nonlocal looks
        looks += 1
        if looks >= _LOOKS:
            raise TimeLimitError(seconds)

    handler = signal.signal(signal.SIGALRM, look)
    before = signal.setitimer(signal.ITIMER_REAL, seconds / _LOOKS, seconds / _LOOKS)
    try:
        if dump_file is not None:
            grace = _GRACE_SECONDS if end_process else seconds / _LOOKS
            faulthandler.dump_traceback_later(seconds + grace, file=dump_file, exit=end_process)
        yield
    finally:
        if dump_file is not None:
            faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *before)


PACKAGE = __name__.partition(".")[0]
_PREFIX = "eureka_environment"
_LOADED = itertools.count()
MISSING_MODULE_HINT = "install it, or name the folder of a module of your own in PYTHONPATH"
"""Hint for a module that cannot be imported in a worker."""
_FILE_HINT = "name the file from pathlib.Path(__file__).parent on: workers run in other folders"
LIBRARIES = frozenset({"gymnasium", "numpy", "torch"})
"""Packages that raise because of their caller's values."""
NO_FAULT = (KeyboardInterrupt, TimeLimitError)
"""Ends of an environment's code from outside: Ctrl-C, and this program's own limits. Anything
else that it raises is its fault, `asyncio.CancelledError` and the like included."""
_MOST_CHARACTERS = 1000
"""Length of an exception's message."""


def import_folder(folder: Path) -> str:
    """Make `folder`, and what it shares, importable as a new package; return its name."""
    package = f"{_PREFIX}_{next(_LOADED)}"
    module = ModuleType(package)
    module.__path__ = [str(each) for each in source_folders(folder)]
    sys.modules[package] = module
    importlib.invalidate_caches()
    return package


def import_file(package: str, folder: Path, path: Path) -> ModuleType:
    """Import one file of a folder. Raises EnvironmentLoadError with file and line."""
    if path.is_file():  # else the import says it
        read_source(path)
    name = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
    with user_code(folder, f"importing {path.name}"):
        return importlib.import_module(name)


def read_source(path: Path) -> str:
    """Text of a Python file. Raises EnvironmentLoadError, with its name, if it does not decode."""
    try:
        text = importlib.util.decode_source(path.read_bytes())
        fault = "it holds null bytes" if "\0" in text else ""
    except (UnicodeDecodeError, SyntaxError) as error:
        fault = getattr(error, "reason", None) or describe_error(error)
    if fault:
        raise EnvironmentLoadError(f"{str(path)!r} is not UTF-8: {fault}", "save it in UTF-8")
    return text


@contextmanager
def user_code(folder: Path | None, doing: str) -> Iterator[None]:
    """Turn anything that a user's file raises into EnvironmentLoadError with file and line."""
    try:
        yield
    except NO_FAULT:
        raise
    except BaseException as error:  # noqa: BLE001  (a user's file can raise anything)
        place = error_place(error, folder)
        if isinstance(error, EurekaError):
            begin = error.message.partition(", line ")[0]
            told = folder and any(f"{each}" in begin for each in source_folders(folder))
            message = f"{'' if told else place}{_cut(error.message)}"
            raise EnvironmentLoadError(message, error.hint) from None
        hint = "correct the file"
        if isinstance(error, FileNotFoundError):
            hint = _FILE_HINT
        elif isinstance(error, ModuleNotFoundError):
            hint = MISSING_MODULE_HINT
        elif folder is not None:
            check = command(shlex.join(["envs", "--check", str(folder)]))
            hint += f"; `{check}` tests all of it"
        message = f"{place}{describe_error(error)} (while {doing})"
        raise EnvironmentLoadError(message, hint) from None


@contextmanager
def third_party_code(
    package: str, when: str, passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Turn exceptions of a third party's environment into EnvironmentLoadError with line and owner.
    `package`: its top-level module; `passing`: exceptions left alone."""
    try:
        yield
    except NO_FAULT:
        raise
    except BaseException as error:  # whatever a third party's code raises
        if isinstance(error, (EurekaError, *passing)):
            raise
        frames = _frames(error)
        for module, place in reversed(frames):
            if mismatch := mujoco_mismatch(module):
                raise EnvironmentLoadError(
                    f"the package {module!r} failed {when}: {place}{describe_error(error)}",
                    f"{mismatch}, which eureka_agent does not run on",
                ) from None
        owner, place = _to_blame(frames, package)
        what = f"{place}{describe_error(error)}"
        if not owner.startswith(_PREFIX):
            raise EnvironmentLoadError(
                f"the package {owner!r} failed {when}: {what}",
                f"the fault is in {owner!r}: try it by itself, and report it there",
            ) from None
        hint = "mend this line" if place else "correct what it gave: it is not what was declared"
        if isinstance(error, FileNotFoundError):
            hint = _FILE_HINT
        elif place and "step" in when and isinstance(error, AssertionError | ValueError):
            hint += ": a step has to take every action of its action_space"
        what += f" (the environment's own code failed {when})"
        raise EnvironmentLoadError(what, hint) from None


def _frames(error: BaseException) -> list[tuple[str, str]]:
    """Top-level module and `"<file>, line <n>: "` of each frame, the innermost last."""
    walked = traceback.walk_tb(error.__traceback__)
    return [(module_of(each), f"{each.f_code.co_filename}, line {line}: ") for each, line in walked]


def module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _to_blame(frames: list[tuple[str, str]], package: str) -> tuple[str, str]:
    """The frame to blame: the innermost of the environment's folder or of `package`, else of a
    module that is no library; without a place if none is: its result was not as declared."""
    calls = [index for index, (owner, _) in enumerate(frames) if owner == PACKAGE]
    behind = frames[calls[-1] + 1 :] if calls else frames
    own = {package} - LIBRARIES
    of_package = [each for each in behind if each[0] in own or each[0].startswith(_PREFIX)]
    of_others = [each for each in behind if each[0] not in sys.stdlib_module_names | LIBRARIES]
    of_gymnasium = [each for each in behind if each[0] == "gymnasium"]
    return (of_package or of_others or of_gymnasium or [(package, "")])[-1]


def describe_error(error: BaseException) -> str:
    """Type and message in one line, cut to a readable length."""
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # noqa: BLE001  (its own `__str__`)
        text = ""
    message = _cut(" ".join(text.split()))
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"


def error_place(error: BaseException, folder: Path | None) -> str:
    """`"<file>, line <n>: "` of the innermost frame within `folder`; empty without one."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: "
    if folder is None:
        return ""
    folders, walked = source_folders(folder), traceback.extract_tb(error.__traceback__)
    inside = [any(Path(each.filename).is_relative_to(one) for one in folders) for each in walked]
    frames = [frame for frame, is_inside in zip(walked, inside, strict=True) if is_inside]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def top_module(cls: type) -> str:
    return cls.__module__.partition(".")[0]


def place_of_function(function: Callable[..., object]) -> str:
    """`"<file>, line <n>: "` of a function's or class's definition; empty without source."""
    try:
        return f"{inspect.getsourcefile(function)}, line {inspect.getsourcelines(function)[1]}: "
    except (OSError, TypeError):
        return ""

"""Importing the Python files of an environment folder, with errors that name file and line in place
of a traceback."""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import inspect
import itertools
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from eureka_agent.errors import EnvironmentLoadError, EurekaError
from eureka_agent.invocation import command

_PREFIX = "eureka_environment"
_LOADED = itertools.count()
LIBRARIES = frozenset({"gymnasium", "numpy", "torch"})
"""Packages that raise because of what another one gave them."""


def import_folder(folder: Path) -> str:
    """Make `folder` importable as a package of its own, loaded anew at each call, and return that
    package's name.

    Its files can import each other relatively (`from ..env import CONTROL_DT` in a task).
    """
    package = f"{_PREFIX}_{next(_LOADED)}"
    module = ModuleType(package)
    module.__path__ = [str(folder)]
    sys.modules[package] = module
    importlib.invalidate_caches()
    return package


def import_file(package: str, folder: Path, path: Path) -> ModuleType:
    """Import one file of a folder that `import_folder` prepared. Raises EnvironmentLoadError naming
    file and line."""
    _check_encoding(path)
    name = ".".join((package, *path.relative_to(folder).with_suffix("").parts))
    with user_code(folder, f"importing {path.name}"):
        return importlib.import_module(name)


def _check_encoding(path: Path) -> None:
    """Raise EnvironmentLoadError for a file that is no text in the encoding that it names, or
    UTF-8: of such a file Python names neither path nor cause."""
    try:
        content = path.read_bytes()
    except OSError:  # the import says so
        return
    try:
        fault = "it holds null bytes" if "\0" in importlib.util.decode_source(content) else ""
    except (UnicodeDecodeError, SyntaxError):
        fault = (
            "it looks like UTF-16"
            if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            else "some of its bytes are no characters"
        )
    if fault:
        raise EnvironmentLoadError(f"{path} is not UTF-8: {fault}", "save it in UTF-8")


@contextmanager
def user_code(folder: Path | None, doing: str) -> Iterator[None]:
    """Turn whatever a user's file raises into an EnvironmentLoadError that names the file and line
    at fault."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever a user's file raises is the user's to read)
        place = error_place(error, folder)
        if isinstance(error, EurekaError):
            told = folder is not None and f"{folder}" in error.message.partition(", line ")[0]
            raise EnvironmentLoadError(
                f"{'' if told else place}{error.message}", error.hint
            ) from None
        if isinstance(error, ModuleNotFoundError):
            hint = missing_module_hint()
        else:
            check = (
                ""
                if folder is None
                else f"; `{command(shlex.join(['envs', '--check', str(folder)]))}` tests all of it"
            )
            hint = f"correct the file{check}"
        raise EnvironmentLoadError(
            f"{place}{describe_error(error)} (while {doing})", hint
        ) from None


def missing_module_hint() -> str:
    """The next step where a module cannot be imported in a worker."""
    build = command("sandbox build --requirements FILE")
    return (
        "install it, or name the folder of a module of your own in PYTHONPATH; "
        f"behind --sandbox docker a package must be in the image too: {build}"
    )


@contextmanager
def third_party_code(
    package: str, when: str, passing: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Turn what an environment of a third party raises into an EnvironmentLoadError with its own
    last line and whose it is.

    `package`: top-level module of the environment; `passing`: exceptions that are left as they are.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        if isinstance(error, (EurekaError, *passing)):
            raise
        owner, place = _owner(error, package)
        is_own = owner.startswith(_PREFIX)
        if is_own:
            raise EnvironmentLoadError(
                f"{place}: {describe_error(error)} (the environment's own code failed {when})",
                "mend this line",
            ) from None
        raise EnvironmentLoadError(
            f"the package {owner!r} failed {when}: {place}: {describe_error(error)}",
            f"the fault is in {owner!r}: try it by itself, and report it there",
        ) from None


def _owner(error: BaseException, package: str) -> tuple[str, str]:
    """Top-level module of the frame to blame, and its `<file>, line <n>`: the innermost one of the
    person's folder or of `package`, else of who is no mere library."""
    frames = [
        (
            str(frame.f_globals.get("__name__", "")).partition(".")[0],
            f"{frame.f_code.co_filename}, line {line}",
        )
        for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    calls = [
        index for index, (owner, _) in enumerate(frames) if owner == __name__.partition(".")[0]
    ]
    behind = frames[calls[-1] + 1 :] if calls else frames
    named = {package} - LIBRARIES
    of_package = [frame for frame in behind if frame[0] in named or frame[0].startswith(_PREFIX)]
    of_others = [frame for frame in behind if frame[0] not in sys.stdlib_module_names | LIBRARIES]
    if not behind:  # what it gave is not what it had said that it gives
        return package, frames[-1][1]
    return (of_package or of_others or behind)[-1]


def describe_error(error: BaseException) -> str:
    """Type and message in one line."""
    message = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def error_place(error: BaseException, folder: Path | None) -> str:
    """`"<file>, line <n>: "` for the innermost frame within `folder`; empty where there is none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: "
    if folder is None:
        return ""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).is_relative_to(folder)
    ]
    return f"{frames[-1].filename}, line {frames[-1].lineno}: " if frames else ""


def top_module(cls: type) -> str:
    """The package that a class is written in."""
    return cls.__module__.partition(".")[0]


def place_of_function(function: Callable[..., object]) -> str:
    """`"<file>, line <n>: "` where a function or a class is defined; empty where it has no
    source."""
    try:
        return f"{inspect.getsourcefile(function)}, line {inspect.getsourcelines(function)[1]}: "
    except (OSError, TypeError):
        return ""

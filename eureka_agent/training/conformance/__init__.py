"""Checks that an environment keeps its contract, like Gymnasium's `check_env`: expected, actual."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import torch

from eureka_agent.errors import EurekaError
from eureka_agent.simulation import user_modules
from eureka_agent.simulation.class_checks import remarks_on
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.training.conformance import checks, rows, training
from eureka_agent.training.conformance.command_checks import CommandChecks
from eureka_agent.training.environment_faults import place_of_error

LIMIT_SECONDS = 60.0
ROLLOUT_SECONDS = 4.0
"""Duration of a brief training."""
_STANDARD_ERROR = 2

Finding = checks.Remark | checks.Note
Check = Callable[[checks.Subject], Iterable[Finding] | None]

_MADE, _VARIABLES, _FITNESS = "can be made", "variables after a reset", "fitness"
_OF_AN_ENVIRONMENT: tuple[tuple[str, Check], ...] = (
    ("observations after a reset", checks.observations_after_reset),
    ("observation columns", checks.written_columns),
    (_VARIABLES, checks.variables_after_reset),
    ("termination", checks.termination),
    ("variables after a step", checks.variables_after_step),
    ("time limit", checks.time_limit),
    ("resets", checks.reset_state),
    ("finite under random actions", checks.finite_values),
    ("finite under extreme actions", checks.extreme_actions),
    ("variable ranges", checks.value_ranges),
    ("same seed, same trajectory", rows.same_seed),
    ("episodes begin anew", rows.begun_anew),
    ("rows are independent", rows.row_independence),
    ("rows are restored", rows.restored_rows),
    ("parameters", rows.parameters),
    ("captions", rows.captions),
    ("resets on a GPU", rows.masked_resets),
    ("steps on a GPU", training.no_values),
    ("episode", training.episode),
)
_OF_A_TASK: tuple[tuple[str, Check], ...] = (
    (_FITNESS, training.fitness),
    ("human reward", training.human_reward),
    ("sparse reward", training.sparse_reward),
    ("task", training.settings),
)
_NEEDED = {"variables after a step": _VARIABLES, "sparse reward": _FITNESS, "task": _FITNESS}
"""Checks that would repeat the finding of another one."""


@dataclass(frozen=True)
class CheckResult:
    name: str
    severity: Literal["ok", "warning", "error"]
    expected: str
    actual: str
    hint: str = ""
    task: str = ""
    """Empty for checks of all tasks together."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """False for an error alone."""
        return self.severity != "error"


class CheckObserver:
    """Receives the progress of checks; this one ignores it."""

    def begins(self, task: str, name: str, seconds: float) -> None:
        """A check begins that takes about so many seconds (0: an instant)."""

    def ends(self, result: CheckResult) -> None:
        """A result is known."""


def check_environment(
    reference: str,
    task: str | None = None,
    *,
    limit_s: float = LIMIT_SECONDS,
    rollout_s: float = ROLLOUT_SECONDS,
    observer: CheckObserver | None = None,
) -> list[CheckResult]:
    """Run all checks on an environment and one of its tasks (None: all); results in order. A fault,
    also a check longer than `limit_s` seconds, is a failed result. Checks end after a failure to
    load or a timeout, and none train after an error."""
    torch.set_num_threads(1)  # as in a worker
    return list(_Checking(reference, limit_s, rollout_s, observer or CheckObserver()).results(task))


@dataclass
class _Checking:
    _reference: str
    _limit_s: float
    _rollout_s: float
    _observer: CheckObserver
    _loaded: LoadedEnvironment | None = None
    _broken: set[tuple[str, str]] = field(default_factory=set)
    """Tasks and names of failed checks."""
    _stuck: bool = False
    """True after a check that did not end; others would not either."""
    _raised: set[str] = field(default_factory=set)
    """Errors so far: any step can raise them, and one report is enough."""

    def results(self, task: str | None) -> Iterator[CheckResult]:
        expected = "the environment and every task can be loaded"
        yield from self._check("", "loads", expected, partial(self._load, task))
        if self._loaded is None or self._broken:
            return
        known = set[str]()
        for name in self._loaded.tasks if task is None else (task,):
            subject = checks.Subject(self._loaded, self._loaded.tasks[name], name)
            if self._loaded.described is not None:
                yield from self._run(CommandChecks(self._limit_s).all(), subject)
                continue
            if repr(subject.task.options) not in known:  # others make another environment
                yield from self._run(((_MADE, checks.made),), subject)
                if (name, _MADE) in self._broken:
                    continue
                yield from self._run(_OF_AN_ENVIRONMENT, subject)
            known.add(repr(subject.task.options))
            yield from self._run(_OF_A_TASK, subject)
            if not self._broken:
                brief = partial(training.brief_training, seconds=self._rollout_s)
                last = ("fitness tells apart", training.fitness_tells_apart)
                yield from self._run((("a brief training", brief), last), subject)

    def _load(self, task: str | None) -> list[checks.Remark]:
        loaded = load_environment(self._reference)
        loaded.task(task)
        self._loaded = loaded
        expected, hint = "nothing that is out of order", "correct it, or leave it if it is meant"
        return [
            checks.Remark(expected, each, hint) for each in remarks_on(loaded.environment_class)
        ]

    def _run(
        self, chosen: Iterable[tuple[str, Check]], subject: checks.Subject
    ) -> Iterator[CheckResult]:
        for name, check in chosen:
            if self._stuck:
                return
            if (subject.name, _NEEDED.get(name)) not in self._broken:
                expected = " ".join((getattr(check, "func", check).__doc__ or "").split())
                takes = check.keywords.get("seconds", 0.0) if isinstance(check, partial) else 0.0
                yield from self._check(subject.name, name, expected, partial(check, subject), takes)

    def _check(
        self,
        task: str,
        name: str,
        expected: str,
        check: Callable[[], Iterable[Finding] | None],
        takes: float = 0.0,
    ) -> Iterator[CheckResult]:
        self._observer.begins(task, name, takes)
        began = time.monotonic()
        try:
            results = self._findings(name, check)
        except checks.Nonconforming as finding:
            self._broken.add((task, name))
            expected, actual = finding.expected or expected, finding.actual
            results = [CheckResult(name, "error", expected, actual, finding.hint)]
            if finding.raised and (actual in self._raised or not actual):
                results = []
            self._raised.add(actual)
        for result in results:
            seconds, told = time.monotonic() - began, result.expected or expected
            dated = replace(result, task=task, expected=told, seconds=seconds)
            self._observer.ends(dated)
            yield dated

    def _findings(
        self, name: str, check: Callable[[], Iterable[Finding] | None]
    ) -> list[CheckResult]:
        """Results of a check that passed. Raises checks.Nonconforming."""
        try:
            with user_modules.time_limit(self._limit_s, _STANDARD_ERROR, end_process=True):
                found = list(check() or ())
        except checks.NotApplicable:
            return []
        except (checks.Nonconforming, KeyboardInterrupt):
            raise
        except EurekaError as error:
            raise checks.Nonconforming("", error.message, error.hint, raised=True) from None
        except user_modules.TimeLimitError as error:
            self._stuck = True
            place = self._place(error) or place_of_error(error)
            actual = f"{place}it did not end within {error.seconds:g} s"
            hint = "look for a loop that never ends, or raise --time-limit"
            raise checks.Nonconforming("", actual, hint) from None
        except BaseException as error:  # noqa: BLE001  (whatever the environment's code raises)
            place = self._place(error)
            # with variables that are not as declared this program's own code fails
            follows = not place and any(each == _VARIABLES for _, each in self._broken)
            actual = "" if follows else f"{place}{user_modules.describe_error(error)}"
            raise checks.Nonconforming("", actual, "correct this line", raised=True) from None
        remarks = (each for each in found if isinstance(each, checks.Remark))
        warnings = [CheckResult(name, "warning", it.expected, it.actual, it.hint) for it in remarks]
        notes = "; ".join(each for each in found if isinstance(each, checks.Note))
        return warnings or [CheckResult(name, "ok", "", notes or "as expected")]

    def _place(self, error: BaseException) -> str:
        return user_modules.error_place(
            error, self._loaded.folder if self._loaded is not None else None
        )

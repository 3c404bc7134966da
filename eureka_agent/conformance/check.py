"""Checks that an environment keeps its contract, like Gymnasium's `check_env`: expected, actual."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import torch

from eureka_agent.conformance import (
    checks,
    devices,
    episodes,
    parameters,
    pictures,
    rows,
    source,
    states,
    training,
)
from eureka_agent.conformance import fitness as metrics
from eureka_agent.conformance.checks import (
    Nonconforming,
    NotApplicable,
    Note,
    Remark,
    Subject,
)
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import command
from eureka_agent.simulation.loading import LoadedEnvironment, describe, load_environment
from eureka_agent.simulation.time_limit import TimeLimitError, patient_time_limit
from eureka_agent.simulation.user_modules import describe_error, error_place
from eureka_agent.training.environment_faults import place_of_error

LIMIT_SECONDS = 60.0
ROLLOUT_SECONDS = 4.0
"""Duration of whole episodes of random actions, and of a brief training."""
_STANDARD_ERROR = 2

Finding = Remark | Note
Check = Callable[[Subject], Iterable[Finding] | None]

_OF_AN_ENVIRONMENT: tuple[tuple[str, Check], ...] = (
    ("names", source.hooks),
    ("observations after a reset", checks.observations_after_reset),
    ("observation columns", states.written_columns),
    ("variables after a reset", checks.variables_after_reset),
    ("termination", checks.termination),
    ("variables after a step", checks.variables_after_step),
    ("time limit", checks.time_limit),
    ("resets", checks.reset_state),
    ("finite under random actions", checks.finite_values),
    ("finite under extreme actions", checks.extreme_actions),
    ("variable ranges", checks.value_ranges),
    ("same seed, same trajectory", checks.same_seed),
    ("episodes begin anew", episodes.begun_anew),
    ("rows are independent", rows.row_independence),
    ("moving actions", rows.moving_actions),
    ("rows are restored", rows.restored_rows),
    ("state in tensors", states.state_in_tensors),
    ("parameters", parameters.parameters),
    ("resets on a GPU", devices.masked_resets),
    ("steps on a GPU", devices.no_values),
    ("copies to a GPU", devices.no_copies_to_the_gpu),
    ("pictures", pictures.own_drawing),
    ("physics", training.mujoco_speed),
    ("episode", training.episode),
)
_OF_A_TASK: tuple[tuple[str, Check], ...] = (
    ("fitness", metrics.fitness),
    ("human reward", metrics.human_reward),
    ("sparse reward", metrics.sparse_reward),
    ("baselines", source.baselines),
    ("torch alone", source.numpy_in_rewards),
)


@dataclass(frozen=True)
class CheckResult:
    """One check's outcome, or one of its warnings."""

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


class Observer:
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
    observer: Observer | None = None,
) -> list[CheckResult]:
    """Run all checks on an environment and one of its tasks (None: all); results in order. A fault,
    also a check longer than `limit_s` seconds, is a failed result. Checks end after a failure to
    load or a timeout, and none train after an error."""
    torch.set_num_threads(1)  # as in a worker
    return list(_Checking(reference, limit_s, rollout_s, observer or Observer()).results(task))


class _Checking:
    """The checks of one environment, in progress."""

    def __init__(
        self, reference: str, limit_s: float, rollout_s: float, observer: Observer
    ) -> None:
        self._reference = reference
        self._limit_s = limit_s
        self._rollout_s = rollout_s
        self._observer = observer
        self._loaded: LoadedEnvironment | None = None
        self._failed = False
        self._broken_fitness: set[str] = set()
        """Tasks whose fitness failed its check; further checks would repeat the finding."""
        self._wrong_variables = False
        """True where variables are not as declared, with which this program's own code fails."""
        self._stuck = False
        """True after a check that did not end; others would not either."""
        self._raised: set[str] = set()
        """Errors raised so far: any step can raise them, and one report is enough."""

    def results(self, task: str | None) -> Iterator[CheckResult]:
        """Run the checks; each result is given as soon as it is known."""
        expected = "env.py and every task can be imported"
        yield from self._check("", "loads", expected, partial(self._load, task))
        if self._loaded is None or self._failed:
            return
        known: list[Mapping[str, object]] = []
        for name in self._loaded.tasks if task is None else (task,):
            subject = Subject(self._loaded, self._loaded.tasks[name])
            # other options make another environment
            if not any(_are_equal(subject.task.options, each) for each in known):
                expected = f"{checks.ROWS} rows can be made and reset"
                results = list(self._check(name, "can be made", expected, partial(_make, subject)))
                yield from results
                if self._stuck:
                    return
                if not results or not results[-1].passed:
                    continue
                yield from self._run(name, _OF_AN_ENVIRONMENT, subject)
            known.append(subject.task.options)
            yield from self._run(name, _OF_A_TASK, subject)
            if self._stuck:
                return
            if name not in self._broken_fitness:
                expected = "the task's settings can be read"
                yield from self._check(name, "task", expected, partial(_describe, subject, name))
            if not self._failed:
                yield from self._run(name, self._rollouts(), subject)

    def _load(self, task: str | None) -> list[Remark]:
        loaded = load_environment(self._reference)
        loaded.task(task)
        self._loaded = loaded
        expected, hint = "nothing that is out of order", "correct it, or leave it if it is meant"
        return [Remark(expected, each, hint) for each in loaded.environment_class._remarks]

    def _rollouts(self) -> tuple[tuple[str, Check], ...]:
        """The checks that run longer, with the values that they share."""
        seen, seconds = states.Seen(), self._rollout_s
        return (
            ("whole episodes", partial(states.long_episodes, seen=seen, seconds=seconds)),
            ("a brief training", partial(training.brief_training, seen=seen, seconds=seconds)),
            ("moving observations", partial(states.moving_columns, seen=seen)),
            ("fitness tells apart", partial(training.fitness_tells_apart, seen=seen)),
            ("stable physics", partial(states.stable_physics, seen=seen)),
        )

    def _run(
        self, task: str, chosen: Iterable[tuple[str, Check]], subject: Subject
    ) -> Iterator[CheckResult]:
        for name, check in chosen:
            if self._stuck:
                return
            if name == "sparse reward" and task in self._broken_fitness:
                continue
            if name == "variables after a step" and self._wrong_variables:
                continue
            expected = " ".join((getattr(check, "func", check).__doc__ or "").split())
            takes = check.keywords.get("seconds", 0.0) if isinstance(check, partial) else 0.0
            yield from self._check(task, name, expected, partial(check, subject), takes)

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
        for result in self._findings(name, expected, check):
            dated = replace(result, task=task, seconds=time.monotonic() - began)
            self._failed = self._failed or not dated.passed
            if name == "variables after a reset" and not dated.passed:
                self._wrong_variables = True
            if name == "fitness" and not dated.passed:
                self._broken_fitness.add(task)
            self._observer.ends(dated)
            yield dated

    def _findings(
        self, name: str, expected: str, check: Callable[[], Iterable[Finding] | None]
    ) -> list[CheckResult]:
        try:
            with patient_time_limit(self._limit_s, _STANDARD_ERROR, end_process=True):
                found = list(check() or ())
        except NotApplicable:
            return []
        except Nonconforming as finding:
            return [CheckResult(name, "error", finding.expected, finding.actual, finding.hint)]
        except EurekaError as error:
            pointer = f"correct the file; `{command('envs --check PATH')}` tests all of it"
            hint = error.hint.replace(pointer, "correct the file")
            return self._raising(name, expected, error.message, hint)
        except TimeLimitError as error:
            self._stuck = True
            place = self._place(error) or place_of_error(error)
            actual = f"{place}it did not end within {error.seconds:g} s"
            hint = "look for a loop that never ends, or raise --time-limit"
            return [CheckResult(name, "error", expected, actual, hint)]
        # whatever the environment's code raises is a result
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001
            place = self._place(error)
            if self._wrong_variables and not place:
                self._failed = True
                return []
            message = f"{place}{describe_error(error)}"
            return self._raising(name, expected, message, "correct this line")
        warnings = [
            CheckResult(name, "warning", each.expected, each.actual, each.hint)
            for each in found
            if isinstance(each, Remark)
        ]
        notes = "; ".join(each for each in found if isinstance(each, Note))
        return warnings or [CheckResult(name, "ok", expected, notes or "as expected")]

    def _raising(self, name: str, expected: str, message: str, hint: str) -> list[CheckResult]:
        """The result of a check that raised; none for a message that was reported before."""
        self._failed = True
        if message in self._raised:
            return []
        self._raised.add(message)
        return [CheckResult(name, "error", expected, message, hint)]

    def _place(self, error: BaseException) -> str:
        return error_place(error, self._loaded.folder if self._loaded is not None else None)


def _are_equal(options: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """False also where the values cannot be compared, as tensors and arrays."""
    try:
        return bool(options == other)
    except Exception:  # noqa: BLE001  (their own `__eq__`)
        return False


def _make(subject: Subject) -> None:
    subject.make().close()


def _describe(subject: Subject, task: str) -> None:
    describe(subject.loaded, task)

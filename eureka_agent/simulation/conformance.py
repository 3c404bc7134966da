"""Does an environment keep the contract? Expected against actual, for whoever writes one; like Gymnasium's `check_env`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from eureka_agent.errors import EurekaError
from eureka_agent.simulation import conformance_checks as checks
from eureka_agent.simulation import conformance_devices as devices
from eureka_agent.simulation import conformance_rows as rows
from eureka_agent.simulation.conformance_checks import Nonconforming, Subject
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.simulation.user_modules import describe_error, error_place

_LOADS = "loads"
_DESCRIBED = "task"
_MADE = "can be made"

_CHECKS: tuple[tuple[str, Callable[[Subject], None]], ...] = (
    ("observations after a reset", checks.observations_after_reset),
    ("variables after a reset", checks.variables_after_reset),
    ("termination", checks.termination),
    ("variables after a step", checks.variables_after_step),
    ("time limit", checks.time_limit),
    ("resets", checks.reset_state),
    ("finite under random actions", checks.finite_values),
    ("finite under extreme actions", checks.extreme_actions),
    ("variable ranges", checks.value_ranges),
    ("same seed, same trajectory", checks.same_seed),
    ("rows are independent", rows.row_independence),
    ("rows are taken up again", rows.restored_rows),
    ("resets on a GPU", devices.masked_resets),
    ("steps on a GPU", devices.no_values),
    ("fitness", checks.fitness),
    ("human reward", checks.human_reward),
    ("sparse reward", checks.sparse_reward),
)


@dataclass(frozen=True)
class CheckResult:
    """One check's outcome."""

    name: str
    passed: bool
    expected: str
    actual: str
    hint: str = ""


def check_environment(reference: str, task: str | None = None) -> list[CheckResult]:
    """Results of all checks on an environment and one of its tasks (None: the default one), in order.

    Whatever is wrong with the environment becomes a failed result, never an exception. When it cannot be loaded or made, the checks
    after that are left out.
    """
    subjects: list[Subject] = []

    def load() -> None:
        loaded = load_environment(reference)
        subjects.append(Subject(loaded, loaded.task(task)[1]))

    results = [_result(_LOADS, "env.py and every task can be imported", load, None)]
    if not subjects:
        return results
    subject = subjects[0]
    results.append(_result(_MADE, f"{checks.ROWS} rows can be made and reset", lambda: subject.make().close(), subject))
    if not results[-1].passed:
        return results
    for name, check in _CHECKS:
        expected = " ".join((check.__doc__ or "").split())
        results.append(_result(name, expected, partial(check, subject), subject))
    if all(result.passed for result in results):
        expected = "the task's settings can be read"
        results.append(_result(_DESCRIBED, expected, lambda: _described(subject, task), subject))
    return results


def _described(subject: Subject, task: str | None) -> None:
    describe(subject.loaded, task)


def _result(name: str, expected: str, check: Callable[[], None], subject: Subject | None) -> CheckResult:
    try:
        check()
    except Nonconforming as finding:
        return CheckResult(name, False, finding.expected, finding.actual, finding.hint)
    except EurekaError as error:
        return CheckResult(name, False, expected, error.message, error.hint)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (one check on someone's code: whatever it raises is the result)
        place = error_place(error, subject.loaded.folder if subject is not None else None)
        return CheckResult(name, False, expected, f"{place}{describe_error(error)}", "correct this line")
    return CheckResult(name, True, expected, "as expected")

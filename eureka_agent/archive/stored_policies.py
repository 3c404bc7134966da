"""The policies that a run has stored, by the word that a person names them with."""

from __future__ import annotations

from pathlib import Path

from eureka_agent.archive.artefacts import BEST, POLICY, RANDOMISED, attempt_folder
from eureka_agent.archive.pruned import check_not_pruned
from eureka_agent.archive.run_folder import Run, unknown_attempt
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import command, show_command
from eureka_agent.records import Attempt


def no_randomised_policy(run: Run) -> RunFolderError:
    """Error of a run whose best reward was not trained under other parameters."""
    fault = f"the run {run.name!r} has no policy of its best reward under other parameters"
    return RunFolderError(fault, f"`{command('resume RUN --randomise 4')}` makes some")


def best_randomised(run: Run, best: Attempt | None) -> tuple[str, int | None]:
    """Id of the attempt that trains the best one's reward under the best distribution of
    parameters, and the seed of its typical policy. Raises RunFolderError where there is none."""
    found = None if best is None else best.randomisation
    if best is None or found is None or found.best is None:
        raise no_randomised_policy(run)
    return f"{best.id}+{found.best}", found.seed


def stored_policy(run: Run, name: str | None) -> Path:
    """File of the best policy for None, of the best one of trainings under other parameters for
    `randomised`, else of an attempt. Raises RunFolderError where there is none."""
    if name is None:
        policy = inside(run.folder, BEST, POLICY)
        fault = f"{run.name!r} has no best policy yet"
        hint = f"`{show_command(run.folder)}` lists its attempts: name one of them"
    elif name == RANDOMISED:
        policy = inside(run.folder, RANDOMISED, POLICY)
        if not policy.is_file():
            raise no_randomised_policy(run)
        return policy
    else:
        attempt = run.archive.attempt(name)
        if attempt is None:
            known = [each.id for each in run.archive.attempts_in_brief()]
            raise unknown_attempt(run, name, known)
        policy = inside(attempt_folder(run.folder, name), POLICY)
        reason = f" ({attempt.reason})" if attempt.reason else ""
        fault = f"the attempt {name!r} has no policy: it is {attempt.stage.value}{reason}"
        hint = f"`{show_command(run.folder)}` lists what was trained"
        if not policy.is_file():
            check_not_pruned(run, name)
    if not policy.is_file():
        raise RunFolderError(fault, hint)
    return policy

"""Attempts of a run whose files were pruned."""

from __future__ import annotations

import shlex

from eureka_agent.archive.artefacts import REWARD, attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import command


def check_not_pruned(run: Run, attempt: str) -> None:
    """Raise RunFolderError for an attempt whose policy was pruned."""
    if time := run.archive.facts.pruned.get(attempt):
        reward = attempt_folder(run.folder, attempt) / REWARD
        flags = ("--env", run.settings.env, "--task", run.description.task)
        again = command(shlex.join(["train", str(reward), *flags]))
        raise RunFolderError(
            f"the policy of {attempt!r} in the run {run.name!r} was pruned on {time[:10]}",
            f"train the reward again: {again}",
        )

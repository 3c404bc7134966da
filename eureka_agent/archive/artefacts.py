"""Readable files of a run folder: a folder for each attempt, each final training, and the best; and
the stored policies by the word that a person names them with."""

from __future__ import annotations

import shlex
from pathlib import Path

from eureka_agent.archive.files import dump_json, write_text
from eureka_agent.archive.run_folder import Run, unknown_attempt
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import RunFolderError
from eureka_agent.invocation import command, show_command
from eureka_agent.markup import fenced
from eureka_agent.records import BASELINES, Attempt

ATTEMPTS, FINALS, BASELINES_FOLDER, BEST = "attempts", "finals", "baselines", "best"
RANDOMISED = "randomised"
"""Folder of the policy of the best distribution of parameters."""
DISTRIBUTION = "distribution.json"
REWARD, POLICY = "reward.py", "policy.safetensors"
CURVES, TRAJECTORIES = "curves.csv", "trajectories.npz"
EPISODES = "episodes.npz"
"""All episodes of the evaluation, once they were asked for."""
PRACTICE = "practice.npz"
"""Episodes of a policy early in its training."""
REPORT, HTML_REPORT = "report.md", "report.html"
VIDEO, GIF = "video.mp4", "video.gif"
SHEET = "moments.jpg"
"""Moments of the best and the worst episode, for a model that sees."""
JUDGED = "judged.jpg"
"""Moments from the same start states in every attempt, for a model that judges."""
MESSAGES = "messages.jsonl"
"""Recording of all requests to models with their replies, written when the run ends or stops."""


def attempt_folder(run: Path, attempt_id: str) -> Path:
    """`attempts/<id>`. Raises RunFolderError, as the three below do, for a path out of the run."""
    return inside(run, ATTEMPTS, attempt_id)


def repeat_folder(run: Path, attempt_id: str, seed: int) -> Path:
    """`attempts/<id>/seed-<seed>`: files of a repeat."""
    return inside(run, ATTEMPTS, attempt_id, f"seed-{seed}")


def training_folder(run: Path, name: str, seed: int) -> Path:
    """`finals/<attempt>/seed-<seed>`, or `baselines/<human or sparse>/seed-<seed>`."""
    parent = BASELINES_FOLDER if name in BASELINES else FINALS
    return inside(run, parent, name, f"seed-{seed}")


def trained_folder(run: Path, attempt: Attempt, seed: int) -> Path:
    """Folder of an attempt's training in the search from this seed."""
    own = seed == attempt.seed
    return attempt_folder(run, attempt.id) if own else repeat_folder(run, attempt.id, seed)


def write_proposal(run: Path, attempt: Attempt) -> None:
    """Write `reward.py`, `prompt.md` and `reply.md`. A model's text stands in a code block, of
    which a viewer of Markdown loads nothing."""
    folder, proposal = attempt_folder(run, attempt.id), attempt.proposal
    write_text(folder / REWARD, proposal.reward.source)
    write_text(folder / "prompt.md", _shown(proposal.prompt))
    write_text(folder / "reply.md", _shown(proposal.reply))


def write_verdict(run: Path, attempt: Attempt) -> None:
    """Write `verdict.json`, if there is a verdict."""
    if attempt.verdict is not None:
        content = {"accepted": attempt.verdict.accepted, **attempt.verdict.model_dump(mode="json")}
        write_text(attempt_folder(run, attempt.id) / "verdict.json", dump_json(content))


def write_diagnosis(run: Path, attempt: Attempt) -> None:
    """Write `outcome.json`, `diagnosis.json` and `diagnosis.md`, as far as they exist."""
    folder = attempt_folder(run, attempt.id)
    if attempt.outcome is not None:
        write_text(folder / "outcome.json", dump_json(attempt.outcome.model_dump(mode="json")))
    if attempt.diagnosis is not None:
        write_text(folder / "diagnosis.json", dump_json(attempt.diagnosis.model_dump(mode="json")))
        write_text(folder / "diagnosis.md", _shown(attempt.diagnosis.whole))


def write_analysis(run: Path, attempt: Attempt) -> None:
    """Write `analysis.md`."""
    write_text(attempt_folder(run, attempt.id) / "analysis.md", _shown(attempt.analysis.strip()))


def _shown(text: str) -> str:
    """Code block of a text; empty for an empty one, such as the offline designer's reply."""
    return f"{fenced(text, 'text')}\n" if text.strip() else ""


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
            raise unknown_attempt(run, name)
        policy = inside(attempt_folder(run.folder, name), POLICY)
        reason = f" ({attempt.reason})" if attempt.reason else ""
        fault = f"the attempt {name!r} has no policy: it is {attempt.stage.value}{reason}"
        hint = f"`{show_command(run.folder)}` lists what was trained"
        if not policy.is_file():
            check_not_pruned(run, name)
    if not policy.is_file():
        raise RunFolderError(fault, hint)
    return policy

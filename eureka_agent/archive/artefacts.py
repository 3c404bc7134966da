"""The readable side of a run folder: one folder an attempt, one a final training, one for the best.

Everything is written under a temporary name and renamed, so a file that is there is whole.
"""

from __future__ import annotations

from pathlib import Path

from eureka_agent.archive.files import dump_json, write_text
from eureka_agent.archive.safe_files import inside
from eureka_agent.markup import fenced
from eureka_agent.records import BASELINES, Attempt

ATTEMPTS, FINALS, BASELINES_FOLDER, BEST = "attempts", "finals", "baselines", "best"
REWARD, POLICY, CURVES, TRAJECTORIES = (
    "reward.py",
    "policy.safetensors",
    "curves.csv",
    "trajectories.npz",
)
MESSAGES = "messages.jsonl"
"""Every request to a model with its reply, as text that can be played back; there once a run that
asked one has ended or was stopped."""


def attempt_folder(run: Path, attempt_id: str) -> Path:
    """`attempts/<id>`. Raises RunFolderError, as those below do, where a link or an id leads out of
    the run."""
    return inside(run, ATTEMPTS, attempt_id)


def repeat_folder(run: Path, attempt_id: str, seed: int) -> Path:
    """`attempts/<id>/seed-<seed>`: the files of a training that confirms the attempt."""
    return inside(run, ATTEMPTS, attempt_id, f"seed-{seed}")


def training_folder(run: Path, name: str, seed: int) -> Path:
    """`finals/<attempt>/seed-<seed>`, or `baselines/<human or sparse>/seed-<seed>`."""
    parent = BASELINES_FOLDER if name in BASELINES else FINALS
    return inside(run, parent, name, f"seed-{seed}")


def write_proposal(run: Path, attempt: Attempt) -> None:
    """`reward.py`, `prompt.md` and `reply.md` of an attempt. What models write stands in a code
    block, of which a viewer of Markdown loads nothing."""
    folder, proposal = attempt_folder(run, attempt.id), attempt.proposal
    write_text(folder / REWARD, proposal.reward.source)
    write_text(folder / "prompt.md", _shown(proposal.prompt))
    write_text(folder / "reply.md", _shown(proposal.reply))


def write_verdict(run: Path, attempt: Attempt) -> None:
    """`verdict.json` of an attempt that the critic has judged."""
    if attempt.verdict is not None:
        content = {"accepted": attempt.verdict.accepted, **attempt.verdict.model_dump(mode="json")}
        write_text(attempt_folder(run, attempt.id) / "verdict.json", dump_json(content))


def write_diagnosis(run: Path, attempt: Attempt) -> None:
    """`outcome.json`, `diagnosis.json` and `diagnosis.md` of an attempt that was trained or failed
    in training."""
    folder = attempt_folder(run, attempt.id)
    if attempt.outcome is not None:
        write_text(folder / "outcome.json", dump_json(attempt.outcome.model_dump(mode="json")))
    if attempt.diagnosis is not None:
        write_text(folder / "diagnosis.json", dump_json(attempt.diagnosis.model_dump(mode="json")))
        write_text(folder / "diagnosis.md", _shown(attempt.diagnosis.text))


def write_analysis(run: Path, attempt: Attempt) -> None:
    """`analysis.md` of an attempt that an analyst has read."""
    write_text(attempt_folder(run, attempt.id) / "analysis.md", _shown(attempt.analysis.strip()))


def _shown(text: str) -> str:
    """Nothing for nothing: the offline designer is asked and answers without words."""
    return f"{fenced(text, 'text')}\n" if text.strip() else ""

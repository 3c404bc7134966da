"""Run folders made by hand, for the page to show."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import av
import numpy as np
from jumper import JUMPER, make_point
from outcomes import make_outcome

from eureka_agent.archive.artefacts import CURVES, attempt_folder, training_folder
from eureka_agent.archive.database import Archive
from eureka_agent.archive.run_folder import create_run
from eureka_agent.journal import entries
from eureka_agent.records import (
    Cost,
    EpisodeSummary,
    Evaluation,
    FinalTraining,
    Finding,
    Message,
    Operator,
    Outcome,
    Proposal,
    RungScore,
    RunStatus,
    Stage,
    Verdict,
)
from eureka_agent.report.curves import write_curves_csv
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import SearchSettings

SOURCE = '''def compute_reward(height):
    """Higher is better."""
    return height, {"height": height}
'''
CHILD = SOURCE.replace("return height, ", "return 2.0 * height, ")


def new_run(parent: Path, sentence: str = "jump high", samples: int = 3) -> tuple[Path, Archive]:
    """A run without attempts: its folder and its open archive."""
    settings = SearchSettings(
        env="jumper", sentence=sentence, samples=samples, env_steps=1000, iterations=2
    )
    run = create_run(settings, JUMPER, ["eureka", "search", sentence], parent=parent)
    run.archive._connection.execute("PRAGMA synchronous=OFF")  # tests have no power cuts
    return run.folder, run.archive


def outcome_of(fitness: float) -> Outcome:
    ended = {"evaluation_episodes": 8, "ended_by": {"fell": 3, "time_out": 5}}
    return make_outcome(fitness, 1000).model_copy(update=ended)


def add_proposal(
    archive: Archive,
    name: str,
    source: str = SOURCE,
    *,
    parents: tuple[str, ...] = (),
    reasoning: str = "because it is high",
) -> None:
    iteration, sample = (int(part) - 1 for part in name.split("-")[:2])
    proposal = Proposal(
        reward=CodeReward(source=source, author="openai/tiny"),
        reasoning=reasoning,
        operator=Operator.IMPROVE if parents else Operator.FRESH,
        parents=parents,
    )
    archive.append(
        entries.Proposed(
            attempt=name, iteration=iteration, sample=sample, revision=0, proposal=proposal, seed=7
        )
    )


def add_trained(
    archive: Archive,
    name: str,
    fitness: float,
    source: str = SOURCE,
    *,
    parents: tuple[str, ...] = (),
    findings: Sequence[Finding] = (),
    reasoning: str = "because it is high",
) -> None:
    """An attempt from its proposal to its score."""
    add_proposal(archive, name, source, parents=parents, reasoning=reasoning)
    archive.append(entries.Judged(attempt=name, verdict=Verdict(findings=tuple(findings))))
    episodes = (EpisodeSummary(fitness=fitness, length=80, ended_by="fell"),) * 2
    evaluation = Evaluation(episodes=episodes, seed=3)
    score = RungScore(env_steps=700, fitness=fitness, evaluation=evaluation)
    archive.append(entries.RungScored(attempt=name, score=score))
    archive.append(
        entries.AttemptEnded(attempt=name, stage=Stage.TRAINED, outcome=outcome_of(fitness))
    )


def add_final(archive: Archive, name: str, values: Sequence[float]) -> None:
    for seed, value in enumerate(values):
        training = FinalTraining(name=name, seed=seed, outcome=outcome_of(value))
        archive.append(entries.FinalTrained(training=training))


def write_curve(folder: Path, height: float) -> None:
    """A curve of three points that rises to a fitness."""
    points = [make_point(number * 333, height * number / 3) for number in (1, 2, 3)]
    folder.mkdir(parents=True, exist_ok=True)
    write_curves_csv(folder / CURVES, points)


def write_video(path: Path, seconds: float = 2.0) -> None:
    """A small H.264 video whose picture gets brighter."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", options={"movflags": "faststart"}) as file:
        stream = file.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(round(10 * seconds)):
            picture = np.full((48, 64, 3), 10 * number % 256, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        file.mux(stream.encode(None))


def finish(archive: Archive) -> None:
    archive.append(entries.RunEnded(status=RunStatus.FINISHED))
    archive.close()


def make_plain_run(parent: Path) -> Path:
    """Five attempts: two in one line of descent, one rejected, one failed; finals, curves, a
    request to a model, two videos."""
    folder, archive = new_run(parent)
    warning = Finding(
        code="C301", severity="warning", line=3, message="it is always positive", hint="centre it"
    )
    add_trained(archive, "1-01", 2.0, findings=[warning])
    add_proposal(archive, "1-02")
    error = Finding(code="A101", severity="error", line=1, message="it reads a file")
    archive.append(entries.Judged(attempt="1-02", verdict=Verdict(findings=(error,))))
    add_proposal(archive, "1-03")
    archive.append(entries.Judged(attempt="1-03", verdict=Verdict()))
    archive.append(
        entries.AttemptEnded(attempt="1-03", stage=Stage.FAILED, reason="it returned NaN")
    )
    add_trained(archive, "2-01", 3.0, CHILD, parents=("1-01",))
    message = Message(
        role="designer",
        model="openai/tiny",
        attempt="2-01",
        request="the whole prompt",
        reply="the whole reply",
        cost=Cost(prompt_tokens=1000, completion_tokens=200, seconds=2.0, money=Decimal("0.02")),
    )
    archive.put("key", message)
    for name, values in {"2-01": (3.0, 3.2), "human": (2.5, 2.7), "sparse": (0.0, 0.2)}.items():
        add_final(archive, name, values)
        for seed, value in enumerate(values):
            write_curve(training_folder(folder, name, seed), value)
    for name, height in (("1-01", 2.0), ("2-01", 3.0)):
        write_curve(attempt_folder(folder, name), height)
        write_video(attempt_folder(folder, name) / "video.mp4")
    write_video(folder / "best" / "video.mp4")
    (folder / "log.txt").write_text("[ 0.0 s] the first line\n[ 1.0 s] the last line\n")
    finish(archive)
    return folder


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x1b[31mred\x1b[0m\x07 {{7*7}}"
)


def make_hostile_run(parent: Path) -> Path:
    """A run of which every text is an attack."""
    folder, archive = new_run(parent, HOSTILE)
    finding = Finding(code="C1", severity="warning", line=1, message=HOSTILE, hint=HOSTILE)
    source = f'def compute_reward(height):\n    """{HOSTILE}"""\n    # {HOSTILE}\n    return height, {{}}\n'
    add_trained(archive, "1-01", 2.0, source, findings=[finding], reasoning=HOSTILE)
    add_trained(archive, "1-02", 3.0, source.replace("height", HOSTILE), parents=("1-01", HOSTILE))
    for attempt in ("1-01", "1-02"):
        archive.append(entries.Analysed(attempt=attempt, text=HOSTILE))
    message = Message(
        role=HOSTILE, model=HOSTILE, attempt="1-01", request=HOSTILE, reply=HOSTILE, cost=Cost()
    )
    archive.put("key", message)
    archive.append(entries.SearchEndedEarly(text=HOSTILE))
    (folder / "log.txt").write_text(HOSTILE)
    archive.append(entries.RunEnded(status=RunStatus.FAILED, message=HOSTILE))
    archive.close()
    return folder

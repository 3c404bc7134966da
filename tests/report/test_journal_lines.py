"""The journal entry by entry: a plain line for each kind, and JSON that is the entry again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from told import ended, judged, proposed
from told import progress as point

from eureka_agent.archive.run_folder import Run, create_run
from eureka_agent.batch_records import BatchedRequest, RequestBatch
from eureka_agent.feedback_records import Wish
from eureka_agent.journal import entries as journal
from eureka_agent.journal import progress
from eureka_agent.journal.entries import KINDS, BaseEntry, kind_of
from eureka_agent.journal.state import Recorded
from eureka_agent.label_records import CaptionLabel, CaptionMet
from eureka_agent.randomisation_records import (
    CurriculumStage,
    HeldOutFitness,
    ParameterPrior,
    Prior,
    Randomisation,
    RandomisedParameters,
    RangeScore,
)
from eureka_agent.records import (
    Attempt,
    Cost,
    FinalTraining,
    Finding,
    Operator,
    Repeat,
    RungScore,
    RunStatus,
    Score,
    Stage,
    TaskDescription,
    ToolCall,
    Verdict,
)
from eureka_agent.report.follow import entry_to_json, journal_lines
from eureka_agent.settings import SearchSettings

EVIL = "[red]red[/red]\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\nnext line"
REQUEST = progress.RequestStarted(number=0, model="openai/tiny", purpose="design of 1-01")
BATCH = RequestBatch(
    id="b1",
    model="openai/tiny",
    requests=(BatchedRequest(key="k", role="designer", prompt_tokens=10, reply_tokens=20),),
    planned_at=1.0,
)
WARNED = Finding(code="D322", severity="warning", message="the goal is not read")
HELD_OUT = HeldOutFitness(mean=2.0, worst_quarter=0.5)
DISTRIBUTION = RandomisedParameters(
    name="d1",
    reason="a load",
    author="offline",
    curriculum=(CurriculumStage(begins=0.0, parameters={"mass": (0.5, 2.0)}),),
)
PRIOR = Prior(
    base=2.0,
    floor=1.0,
    episodes=16,
    parameters=(ParameterPrior(name="mass", scores=(), low=0.8, high=1.2),),
)
RANDOMISATION: tuple[tuple[BaseEntry, str], ...] = (
    (
        journal.RandomisationChanged(attempt="1-01", now=Randomisation(prior=PRIOR)),
        "prior of 1-01, each parameter alone: mass=0.8..1.2",
    ),
    (
        journal.RandomisationChanged(
            attempt="1-01", now=Randomisation(prior=PRIOR, distributions=(DISTRIBUTION,))
        ),
        "1-01 is trained under distributions of parameters: d1 mass=0.5..2",
    ),
    (
        journal.RangesScored(
            attempt="1-01",
            score=RangeScore(seed=3, fitness=2.5, choice=HELD_OUT, held_out=HELD_OUT),
        ),
        "1-01 from seed 3 over the safe ranges: 2.00, worst quarter 0.500",
    ),
    (
        journal.RandomisationChanged(attempt="1-01", now=Randomisation(prior=PRIOR, best="d1")),
        "the best distribution of parameters is 1-01+d1",
    ),
    (
        journal.RandomisationChanged(attempt="1-01", now=Randomisation(text="nothing was gained")),
        "no distribution of parameters is chosen: nothing was gained",
    ),
)
SCORE = Score(name="human", seeds=(1,), fitness=(2.0,), mean=2.0, std=None)


@pytest.fixture
def story(
    attempt: Callable[..., Attempt], description: TaskDescription, settings: SearchSettings
) -> list[tuple[BaseEntry, str]]:
    """One entry of every kind, and a part of its line."""
    first = attempt("1-01", Stage.TRAINED, 1.5)
    assert first.outcome is not None
    final = FinalTraining(name="human", seed=3, outcome=first.outcome)
    started = journal.RunStarted(
        run_name="jumper",
        description=description,
        sentence="jump",
        settings=settings,
        wall="process",
        designer="offline",
    )
    told: list[tuple[BaseEntry, str]] = [
        (journal.RunCreated(command=("eureka", "search", "jump high")), "'jump high'"),
        (started, "run jumper starts: 'jump'"),
        (
            journal.SettingChanged(name="novelty", before=True, now=False),
            "novelty changed from True to",
        ),
        (journal.Notice(text="one core only", level="warning"), "warning: one core only"),
        (journal.IterationStarted(iteration=0, round=0, samples=3), "iteration 1 of 2: 3"),
        (REQUEST, "request to openai/tiny: design of 1-01"),
        (progress.RequestEnded(request=REQUEST, cost=Cost()), "reply from openai/tiny"),
        (progress.RequestBatchPlanned(batch=BATCH), "batch b1 of 1 request to openai/tiny is sent"),
        (
            progress.RequestBatchSent(id="b1", provider_id="batch-1"),
            "batch b1 is with the provider as batch-1",
        ),
        (
            progress.RequestBatchAwaited(id="b1", model="openai/tiny", requests=1, seconds=0.0),
            "a batch of 1 request is with the provider of openai/tiny",
        ),
        (
            progress.RequestBatchEnded(id="b1", unanswered=("k",)),
            "a batch of requests has ended, 1 request of it without a reply",
        ),
        (proposed(first), "1-01 proposed: fresh"),
        (judged(first), "1-01 accepted by the critic"),
        (
            judged(first.model_copy(update={"verdict": Verdict(findings=(WARNED, WARNED))})),
            "1-01 accepted by the critic (fresh), with 2 warnings: D322, D322",
        ),
        (journal.Reviewed(attempt="1-01", verdict=Verdict()), "1-01 passed its review: 0 findings"),
        (
            progress.TrainingQueued(job="1-01@7", label="1-01", training="search", seed=7),
            "search training of 1-01 from seed 7 waits for a slot",
        ),
        (
            progress.TrainingProgress(job="1-01@7", points=(point(2000, 1.5),)),
            "1-01@7 at 2.00k env steps: fitness 1.50",
        ),
        (progress.TrainingRetried(job="1-01@7", reason="it died"), "1-01 starts again: it died"),
        (
            progress.TrainingResumed(job="1-01@7", label="1-01", points=(point(500, None),)),
            "training of 1-01 goes on at 500 env steps",
        ),
        (
            journal.RungScored(attempt="1-01", score=RungScore(env_steps=400, fitness=5.0)),
            "1-01 at 400 env steps: fitness 5.00",
        ),
        (
            progress.TrainingEnded(job="1-01@7", label="1-01", training="search", fitness=1.5),
            "search training of 1-01 ended: fitness 1.50",
        ),
        (ended(first), "1-01 trained: fitness 1.50"),
        (journal.Analysed(attempt="1-01", text="it hops"), "1-01 analysed: it hops"),
        (
            journal.ToolAnswered(
                attempt="2-01",
                key="a",
                call=ToolCall(
                    id="1",
                    name="ask",
                    arguments='{"attempt": "1-01", "expression": "speed", "where": "near < 1"}',
                ),
                text="mean 3",
            ),
            "2-01 asks 1-01: speed where near < 1",
        ),
        (
            journal.CaptionsAsked(
                number=0, captions=(CaptionMet(code=4, text="it holds a key", count=9),)
            ),
            "labels of 1 caption asked for",
        ),
        (
            journal.CaptionsLabelled(
                number=0,
                labels=(CaptionLabel(code=4, value=1.0), CaptionLabel(code=5, value=None)),
                failure="1 of 2 have no clear answer",
            ),
            "1 label, 1 good; 1 of 2 have no clear answer",
        ),
        (
            journal.ConfirmationStarted(iteration=0, attempts=("1-01",), trainings=1),
            "trained again from other seeds: 1-01",
        ),
        (
            journal.AttemptRepeated(
                attempt="1-01", repeat=Repeat(iteration=0, seed=8, outcome=first.outcome)
            ),
            "1-01 trained again: fitness 1.50; mean 1.50 over 2 seeds",
        ),
        (journal.IterationEnded(iteration=0, best="1-01"), "iteration 1 ends: best so far is 1-01"),
        (
            journal.Planned(
                iteration=1, sample=2, operator=Operator.CROSSOVER, parents=("1-01", "1-02"), seen=9
            ),
            "2-03 planned: crossover from 1-01 and 1-02",
        ),
        (
            journal.FeedbackGiven(who="ada", feedback=Wish(attempt="1-01", wants="hop higher")),
            "ada wants of 1-01: hop higher",
        ),
        (journal.BaselinesNotAwaited(limit="10 min"), "the time is up"),
        (journal.DeadlineReached(limit="10 min", iterations=1, text="10 min up"), "10 min up"),
        (journal.ModelBudgetSpent(limits={"max_cost": "1"}, text="$1 is spent"), "$1 is spent"),
        (journal.SearchEndedEarly(text="nothing was left"), "nothing was left"),
        (journal.FinalStarted(attempts=("1-01",)), "final trainings with fresh seeds: 1-01"),
        (
            journal.FinalRound(seeds={"1-01": 2, "1-02": 1}),
            "fresh seeds next: 1-01 up to 2, 1-02 up to 1",
        ),
        (journal.FinalTrained(training=final), "human from seed 3: fitness 1.50"),
        (journal.Scored(score=SCORE), "human: 2.00 over 1 seed"),
        *RANDOMISATION,
        (journal.RunEnded(status=RunStatus.FAILED, message="it broke"), "run failed: it broke"),
        (
            journal.Pruned(attempts=("1-01",), files=3, size=2_500_000),
            "3 files removed to free 2.5 MB, of 1-01",
        ),
    ]
    return told


def recorded(entries: list[BaseEntry]) -> list[Recorded]:
    time = "2026-11-21T03:55:00+00:00"
    return [Recorded(number, time, 2.5, entry) for number, entry in enumerate(entries, 1)]


def test_every_kind_of_entry_has_a_line_and_comes_back_from_its_json(
    story: list[tuple[BaseEntry, str]],
) -> None:
    entries = [entry for entry, _ in story]
    assert {kind_of(entry) for entry in entries} == set(KINDS)
    lines = list(journal_lines(recorded(entries), Path("runs/jumper")))
    for (entry, part), line in zip(story, lines, strict=True):
        assert line.startswith(f"2026-11-21 03:55:00       2.5 s  {kind_of(entry):<22} "), line
        assert part in line
    for each in recorded(entries):
        content = json.loads(json.dumps(entry_to_json(each)))
        entry = {"kind": content.pop("kind"), **content.pop("fields")}
        version = 2 if kind_of(each.entry) == "proposed" else 1
        place = {"number": each.number, "time": each.time, "seconds": 2.5}
        assert content == place | {"version": version}
        model = type(each.entry)
        assert model.model_validate_json(json.dumps(entry)) == model.model_validate_json(
            each.entry.model_dump_json()
        )


@pytest.fixture
def run(
    tmp_path: Path,
    attempt: Callable[..., Attempt],
    description: TaskDescription,
    settings: SearchSettings,
) -> Run:
    made = create_run(settings, description, ["eureka", "search", EVIL], parent=tmp_path / "runs")
    evil = attempt("1-01", Stage.REJECTED, reason=EVIL)
    for entry in (proposed(evil), judged(evil), journal.Notice(text=EVIL + "x" * 100_000)):
        made.archive.append(entry)
    made.archive.close()
    return made


def show(run: Run, *arguments: str, status: int = 0) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "eureka_agent.cli.main", "show", str(run.folder), *arguments],
        env={**os.environ, "EUREKA_RUNS": str(run.folder.parent)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == status, result.stderr
    return result.stdout if status == 0 else result.stderr


def test_the_command_prints_lines_of_bounded_length_that_command_no_terminal(run: Run) -> None:
    lines = show(run, "--events").splitlines()
    assert [line.split()[4] for line in lines] == ["run-created", "proposed", "judged", "notice"]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) < 400
    assert "\u202e" not in "".join(lines)
    assert lines[2].endswith("1-01 thrown out by the critic: C102 line 3: [red]red[/red] next line")


def test_the_json_has_a_schema_version_the_run_and_whole_entries(run: Run) -> None:
    text = show(run, "--events", "--format", "json")
    assert all(character.isprintable() or character == "\n" for character in text)
    content = json.loads(text)
    assert list(content) == ["schema_version", "run", "folder", "entries"]
    assert content["run"] == run.name
    assert [each["kind"] for each in content["entries"]] == [
        "run-created",
        "proposed",
        "judged",
        "notice",
    ]
    assert content["entries"][2]["fields"]["verdict"]["findings"][0]["message"] == EVIL
    assert content["entries"][3]["fields"]["text"] == EVIL + "x" * 100_000

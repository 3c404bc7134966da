"""A trajectory gate that refuses most of a generation is no longer believed. That decision depends
on the archive alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_search import (
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)
from thoroughness import third

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.gate import is_wrong
from eureka_agent.critic.memory import NOTHING_KNOWN, Memory
from eureka_agent.feedback_records import Feedback, Judge, Wish
from eureka_agent.journal.entries import FeedbackGiven, Notice
from eureka_agent.protocol.events import Scored
from eureka_agent.records import Finding, Verdict
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.attempts import AttemptRunner
from eureka_agent.search.recorder import Recorder
from eureka_agent.search.summary import run_report
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]
SETTINGS: dict[str, Any] = {"iterations": 2, "samples": 4, "revisions": 1, "retry_rounds": 0, "finalists": 1, "final_seeds": 1}  # fmt: skip


def disliked(weight: float) -> str:
    """A reward whose returns are highest for the worst episodes: of all pairs it orders none
    right."""
    return reward(weight).replace("-", "+0.5 * ").replace("closeness", "distance")


SOURCES = [reward(1), reward(2), reward(3), reward(4)]
MENDED = {disliked(weight): disliked(weight + 10) for weight in range(1, 9)}
TABLE: dict[str | tuple[str, int], float | str] = {
    **{reward(weight): float(weight) for weight in range(1, 20)},
    **{disliked(weight): 5.0 + weight for weight in range(1, 30)},
    reward(100): 6.0,
    reward(200): 1.0,
}


class Runner:
    """Gives the episodes of an attempt returns in the order of their fitness, or against it."""

    def __init__(self, run: Run) -> None:
        self._run = run

    async def dry_run(self, reward: RewardSpecification) -> tuple[Finding, ...]:
        return ()

    async def score(self, reward: RewardSpecification, episodes: Mapping[str, Path]) -> Scored:
        sign = -1.0 if "distance" in reward.source else 1.0
        returns = tuple(
            {
                name: sign * float(np.load(path)[f"{name}/fitness"].sum())
                for name in ("worst", "best")
            }
            for path in episodes.values()
        )
        total = float(
            len(reward.source)
        )  # another one for every reward: novelty has nothing to say
        return Scored(job="none", returns=returns, totals=(total, 0.0), extreme_totals=())


class RecordedTrials(TableTrials):
    """Leaves episodes whose fitness is the table's, and twice that."""

    async def run(self, request: TrialRequest) -> Trial:
        trial = await super().run(request)
        if trial.outcome is not None and trial.outcome.fitness is not None:
            fitness = {"worst": trial.outcome.fitness, "best": 2 * trial.outcome.fitness}
            arrays = {
                f"{name}/fitness": np.full(1, value, np.float32) for name, value in fitness.items()
            }
            np.savez(request.folder / "trajectories.npz", **arrays)
        return trial


class Hasty(ScriptedDesigner):
    """Answers at once, in an order of chance; each sample has its own source."""

    def __init__(
        self, sources: Mapping[str, str], seed: int = 0, fuse: Fuse | None = None, **options: Any
    ) -> None:
        super().__init__([], MENDED, concurrent=True, fuse=fuse, **options)
        self._by_attempt = sources
        self._random = random.Random(seed)

    async def propose(self, request: Any) -> Any:
        self._fuse("propose")
        for _ in range(self._random.randrange(30)):
            await asyncio.sleep(0)
        self.requests.append(request)
        return self._proposal(self._by_attempt[request.attempt], request)


def search_of(
    run: Run, designer: ScriptedDesigner, told: list[Any] | None = None, fuse: Fuse | None = None
) -> ScriptedSearch:
    class Fused(Critic):
        async def judge(
            self, reward: RewardSpecification, memory: Memory = NOTHING_KNOWN
        ) -> Verdict:
            if fuse is not None:
                fuse("judge")
            return await super().judge(reward, memory)

    observer = (told if told is not None else []).append
    search = ScriptedSearch(
        run, designer, RecordedTrials(TABLE, fuse), observer=observer, fuse=fuse
    )
    recorder = Recorder(run, observer)
    critic = Fused(run.description, Runner(run), novelty=False, gate=run.settings.gate)
    search.engine._attempts = AttemptRunner(run, designer, critic, search.trials, recorder)
    return search


def second_generation(*sources: str) -> dict[str, str]:
    names = [f"{iteration}-{sample:02d}" for iteration in (1, 2) for sample in range(1, 5)]
    return dict(zip(names, (*SOURCES, *sources), strict=False))


MOST_REFUSED = second_generation(disliked(1), disliked(2), reward(7), disliked(3))
SOME_REFUSED = second_generation(disliked(1), disliked(2), reward(7), reward(8))


@pytest.mark.parametrize(
    ("judged", "refused", "wrong"),
    [(2, 2, False), (3, 1, False), (3, 2, True), (4, 2, False), (8, 5, True)],
)
def test_a_gate_is_wrong_that_refuses_more_than_half_of_at_least_three(
    judged: int, refused: int, wrong: bool
) -> None:
    assert is_wrong(judged, refused) is wrong


async def test_what_a_wrong_gate_refused_is_trained_with_a_warning_and_costs_no_revision(
    make_run: MakeRun,
) -> None:
    run, designer, told = make_run(**SETTINGS), Hasty(MOST_REFUSED), list[Any]()
    await search_of(run, designer, told).see_through()
    assert [row[:2] for row in rows(run)][4:] == [
        (f"2-0{sample}", "trained") for sample in range(1, 5)
    ]
    assert designer.revisions == []
    codes = [
        [(found.code, found.severity) for found in attempt.verdict.findings]
        for attempt in run.archive.attempts(1)
        if attempt.verdict is not None
    ]
    assert codes == [[("G601", "warning")], [("G601", "warning")], [], [("G601", "warning")]]
    (warning,) = (event.text for event in told if isinstance(event, Notice))
    assert warning.startswith(
        "the trajectory gate refused 3 of the 4 proposals of generation 2 that it judged"
    )
    assert run_report(run).remarks == (warning,)
    assert run.archive.state.gate_loosened.sample == 0


@pytest.mark.parametrize("feedback", [Wish(wants="fall over"), Judge(by="choices")])
async def test_a_gate_only_warns_where_a_person_leads(
    make_run: MakeRun, feedback: Feedback
) -> None:
    """The gate orders episodes by the fitness, of which the person may want less."""
    run, designer = make_run(**SETTINGS), Hasty(SOME_REFUSED)
    run.archive.append(FeedbackGiven(who="ada", feedback=feedback))
    await search_of(run, designer).see_through()
    assert [row[:2] for row in rows(run)][4:] == [
        (f"2-0{sample}", "trained") for sample in range(1, 5)
    ]
    assert designer.revisions == []
    codes = [found.code for each in run.archive.attempts(1) for found in each.verdict.findings]
    assert codes == ["G601", "G601"]
    assert run.archive.state.gate_loosened is None


async def test_a_gate_that_refuses_half_is_believed(make_run: MakeRun) -> None:
    run, designer = make_run(**SETTINGS), Hasty(SOME_REFUSED)
    await search_of(run, designer).see_through()
    assert [row[:2] for row in rows(run)][4:] == [
        ("2-01", "rejected"),
        ("2-01-r1", "rejected"),
        ("2-02", "rejected"),
        ("2-02-r1", "rejected"),
        ("2-03", "trained"),
        ("2-04", "trained"),
    ]
    assert run.archive.state.gate_loosened is None


THREE_OF_TWO = {"samples": 2, "iterations": 3, "revisions": 0}
"""Two attempts give six pairs of episodes, too few for the gate; four give enough."""


def third_generation(*sources: str) -> dict[str, str]:
    names = ("1-01", "1-02", "2-01", "2-02", "3-01", "3-02", "3-03", "3-04")
    return dict(zip(names, (reward(1), reward(9), reward(2), reward(8), *sources), strict=False))


async def test_earlier_rounds_of_a_generation_count(make_run: MakeRun) -> None:
    run = make_run(**{**SETTINGS, **THREE_OF_TWO, "retry_rounds": 1})
    await search_of(run, Hasty(third_generation(*map(disliked, range(1, 5))))).see_through()
    assert [row[:2] for row in rows(run)][4:] == [
        ("3-01", "rejected"),  # two were judged, which is too few to say anything of the gate
        ("3-02", "rejected"),
        ("3-03", "trained"),  # four of four
        ("3-04", "trained"),
    ]
    assert run.archive.state.gate_loosened.sample == 2


async def test_once_loosened_it_stays_so(make_run: MakeRun) -> None:
    run = make_run(**{**SETTINGS, "iterations": 3})
    later = {f"3-0{sample}": source for sample, source in enumerate((disliked(4), *SOURCES[:3]), 1)}
    told: list[Any] = []
    await search_of(run, Hasty({**MOST_REFUSED, **later}), told).see_through()
    assert rows(run)[8][:2] == ("3-01", "trained")  # one of four
    assert sum(isinstance(event, Notice) for event in told) == 1


async def test_in_order_each_is_judged_by_those_before_it(make_run: MakeRun) -> None:
    run = make_run(**{**SETTINGS, "samples": 4, "revisions": 0})
    designer = ScriptedDesigner([*SOURCES, *map(disliked, range(1, 5))])
    await search_of(run, designer).see_through()
    assert [row[:2] for row in rows(run)][4:] == [
        ("2-01", "rejected"),
        ("2-02", "rejected"),
        ("2-03", "trained"),
        ("2-04", "trained"),
    ]


@pytest.mark.parametrize("concurrent", [True, False])
@pytest.mark.parametrize(
    "point", third([*(("judge", number) for number in range(5, 9)), ("trained", 5), ("propose", 7)])
)
async def test_killed_and_resumed_the_gate_is_loosened_at_the_same_place(
    make_run: MakeRun, point: tuple[str, int], concurrent: bool
) -> None:
    def designer(run: Run, fuse: Fuse | None = None, seed: int = 0) -> ScriptedDesigner:
        if concurrent:
            return Hasty(MOST_REFUSED, seed, fuse)
        known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
        return ScriptedDesigner(list(MOST_REFUSED.values())[known:], MENDED, fuse=fuse)

    def known(run: Run) -> list[tuple[str, str, Any]]:
        return [
            (each.id, each.stage.value, each.verdict and each.verdict.findings)
            for each in run.archive.attempts()
        ]

    whole, broken = make_run(**SETTINGS), make_run(**SETTINGS)
    await search_of(whole, designer(whole)).see_through()
    fuse = Fuse(*point)
    with pytest.raises(BaseExceptionGroup) as caught:
        await search_of(broken, designer(broken, fuse, 3), fuse=fuse).see_through()
    assert caught.group_contains(Killed)
    again = open_run(broken.folder)
    await search_of(again, designer(again, seed=5)).see_through()
    assert known(again) == known(whole)
    assert again.archive.state.gate_loosened == whole.archive.state.gate_loosened


async def test_switched_off_when_it_is_resumed_it_lets_pass_what_it_refused_last(
    make_run: MakeRun,
) -> None:
    run = make_run(**{**SETTINGS, **THREE_OF_TWO, "revisions": 1})
    sources = third_generation(disliked(1), disliked(2))
    await search_of(run, Hasty(sources)).see_through()
    assert [row[1] for row in rows(run)][4:] == ["rejected"] * 4
    assert len(run_report(run).remarks) == 1  # the generation came to nothing
    off = open_run(run.folder)
    off.settings = off.settings.model_copy(update={"gate": False})
    await search_of(off, Hasty(sources)).see_through()
    assert [row[:2] for row in rows(off)][4:] == [
        ("3-01", "rejected"),
        ("3-01-r1", "trained"),
        ("3-02", "rejected"),
        ("3-02-r1", "trained"),
    ]
    assert run_report(off).remarks == ()

"""Several drafts of a proposal, of which the most promising one is trained."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.integrate import quad
from scipy.stats import median_abs_deviation, norm, spearmanr
from scripted_search import (
    IMPORTING,
    CleanDryRun,
    Fuse,
    Killed,
    ScriptedDesigner,
    ScriptedSearch,
    TableTrials,
    reward,
    rows,
)

from eureka_agent.archive.artefacts import PRACTICE, TRAJECTORIES
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.feedback_records import Wish
from eureka_agent.journal.entries import FeedbackGiven
from eureka_agent.records import Credit, Finding, Proposal, Verdict
from eureka_agent.rewards import RewardSpecification
from eureka_agent.search.drafts import Known, expected_improvements
from eureka_agent.search.strategies import BestOfN, Strategy
from eureka_agent.search.trial import Trial, TrialRequest

MakeRun = Callable[..., Run]

FIRST = [reward(1), reward(2)]
DRAFTS = {reward(3): 0.1, reward(4): 0.6, reward(5): 0.2, reward(6): 0.3, reward(7): None}
"""Drafts of the second generation and how their credit agrees with the fitness's."""


class Credits(CleanDryRun):
    """Knows the credit of sources, which have nothing in common."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[str, ...]]] = []
        self.lying: set[str] = set()
        self.refused: set[str] = set()

    async def dry_run(self, reward: RewardSpecification) -> tuple[Finding, ...]:
        wrong = Finding(code="D301", severity="error", message="not finite", line=None, hint="")
        return (wrong,) if reward.source in self.refused else ()

    async def credits(
        self, rewards: Sequence[RewardSpecification], episodes: Mapping[str, Path]
    ) -> list[Credit | None]:
        self.asked += [(each.source, tuple(episodes)) for each in rewards]
        return [self._credit(each.source) for each in rewards]

    def _credit(self, source: str) -> Credit | None:
        value = DRAFTS.get(source, 0.0)
        if value is None:
            return None
        if source in self.lying:
            return Credit(step=1, to_go=1, advantage=1, ranks=(0.5,) * 9)
        random = np.random.default_rng(zlib.crc32(source.encode()))
        ranks = [(random.permutation(50) - 24.5) / 50 for _ in range(3)]
        return Credit(
            step=value, to_go=value, advantage=value, ranks=tuple(np.concatenate(ranks).tolist())
        )


class NextDraft(ScriptedDesigner):
    """Revises by the most promising draft that is left."""

    async def revise(
        self, request: DesignRequest, rejected: Proposal, verdict: Verdict
    ) -> Proposal:
        self._fuse("revise")
        return request.drafts[0]


class Recorded(TableTrials):
    """Leaves episodes of each training, unless told otherwise."""

    def __init__(self, *arguments: object, practice: bool = True, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._practice = practice

    async def run(self, request: TrialRequest) -> Trial:
        trial = await super().run(request)
        for name in (TRAJECTORIES, *([PRACTICE] if self._practice else [])):
            np.savez(request.folder / name, **{"worst/fitness": np.zeros(2, dtype=np.float32)})
        return trial


def search_of(
    run: Run,
    sources: list[str],
    *,
    practice: bool = True,
    fuse: Fuse | None = None,
    strategy: Strategy | None = None,
) -> tuple[ScriptedSearch, ScriptedDesigner, Credits]:
    designer = NextDraft(sources, fuse=fuse)
    table = {reward(weight): float(weight) for weight in range(1, 8)}
    trials = Recorded(table, fuse, practice=practice)
    search = ScriptedSearch(run, designer, trials, fuse=fuse, strategy=strategy)
    credits = Credits()
    search.engine.attempts._critic._runner = credits
    return search, designer, credits


def settings(make_run: MakeRun, drafts: int) -> Run:
    return make_run(iterations=2, samples=2, drafts=drafts, confirm=0, finalists=0, novelty=False)


async def test_the_draft_that_promises_most_is_trained(make_run: MakeRun) -> None:
    run = settings(make_run, 2)
    search, designer, credits = search_of(run, [*FIRST, *list(DRAFTS)[:4]])
    await search.engine.generations()
    trained = [source for _, _, source, _ in rows(run)]
    assert trained == [*FIRST, reward(4), reward(6)]
    later = [each.proposal.drafts for each in run.archive.attempts(1)]
    assert all(0.0 < first < second for first, second in later)
    assert [each.proposal.drafts for each in run.archive.attempts(0)] == [(), ()]
    # compared on the episodes of both trainings, of policies that have only begun to learn
    files = ("1-01-practice", "1-02-practice")
    known = [*FIRST, *list(DRAFTS)[:4]]
    assert credits.asked == [(source, files) for source in known]
    seeds = [request.seed for request in designer.requests]
    assert len(set(seeds)) == len(seeds)
    # a draft knows the ones before it, and the proposals before
    assert reward(3) in designer.requests[3].siblings
    assert reward(4) in designer.requests[4].siblings


async def test_a_draft_without_credit_is_the_last_choice(make_run: MakeRun) -> None:
    run = settings(make_run, 2)
    search, *_ = search_of(run, [*FIRST, IMPORTING, reward(3), reward(7), reward(4)])
    await search.engine.generations()
    assert [source for _, _, source, _ in rows(run)][2:] == [reward(3), reward(4)]
    first, second = run.archive.attempts(1)[0].proposal.drafts
    assert first is None
    assert second is not None


@pytest.mark.parametrize(("liar", "known"), [(1, [True, True]), (3, [False, True])])
async def test_a_credit_of_other_steps_is_none(
    make_run: MakeRun, liar: int, known: list[bool]
) -> None:
    """A reward's own process writes its credit."""
    run = settings(make_run, 2)
    search, _, credits = search_of(run, [*FIRST, *list(DRAFTS)[:4]])
    credits.lying = {reward(liar)}
    await search.engine.generations()
    found = run.archive.attempts(1)[0].proposal.drafts
    assert [each is not None for each in found] == known


@pytest.mark.parametrize("rank", [-0.6, 1e308, float("nan")])
def test_ranks_are_bounded(rank: float) -> None:
    with pytest.raises(ValidationError):
        Credit(step=0, to_go=0, advantage=0, ranks=(-0.5, rank, 0.5))


async def test_a_fresh_draft_that_was_not_taken_may_be_taken_later(make_run: MakeRun) -> None:
    """With one sample a generation; the last two drafts have no credit."""
    run = make_run(iterations=4, samples=1, drafts=2, confirm=0, finalists=0, novelty=False)
    search, *_ = search_of(run, [reward(2), *list(DRAFTS), IMPORTING], strategy=BestOfN())
    await search.engine.generations()
    trained = [source for _, _, source, _ in rows(run)]
    assert trained[:3] == [reward(2), reward(4), reward(6)]
    old = {reward(3), reward(5)}
    assert trained[3] in old
    last = run.archive.attempts(3)[0].proposal
    assert [each is None for each in last.drafts] == [True, True, False, False]
    left = [each.reward.source for each in run.archive.state.kept_drafts[0]]
    assert left == [*old - {trained[3]}]
    again = open_run(run.folder)
    assert again.archive.state.kept_drafts == run.archive.state.kept_drafts


@pytest.mark.parametrize("call", [None, 1, 2])
async def test_a_revision_knows_the_drafts_that_are_left(
    make_run: MakeRun, call: int | None
) -> None:
    """And again where the search is killed before its first or second revision."""
    run = make_run(iterations=2, samples=1, drafts=4, confirm=0, finalists=0, novelty=False)
    sources = [reward(2), *list(DRAFTS)[:4]]
    fuse = Fuse() if call is None else Fuse("revise", call)
    search, _, credits = search_of(run, sources, strategy=BestOfN(), fuse=fuse)
    refused = {reward(4), reward(6)}  # the two that promise most
    credits.refused = refused
    with nullcontext() if call is None else pytest.raises(BaseExceptionGroup):
        await search.engine.generations()
    if call is not None:
        run = open_run(run.folder)
        search, _, credits = search_of(run, [], strategy=BestOfN())
        credits.refused = refused
        await search.engine.generations()
    made = [each.proposal.reward.source for each in run.archive.attempts(1)]
    assert made == [reward(4), reward(6), reward(5)]
    assert run.archive.attempts(1)[2].fitness == 5.0
    left = [each.reward.source for each in run.archive.state.kept_drafts[0]]
    assert left == [reward(3)]


@pytest.mark.parametrize("feedback", [Wish(wants="fall over"), None])
async def test_after_a_person_s_feedback_or_without_episodes_there_is_one_draft(
    make_run: MakeRun, feedback: Wish | None
) -> None:
    run = settings(make_run, 3)
    sources = [*FIRST, *list(DRAFTS)[:2]]
    search, designer, credits = search_of(run, sources, practice=feedback is not None)
    if feedback is not None:
        run.archive.append(FeedbackGiven(who="ada", feedback=feedback))
    await search.engine.generations()
    assert len(designer.requests) == 4
    assert credits.asked == []


@pytest.mark.parametrize("call", [3, 6])
async def test_a_search_that_is_killed_among_drafts_goes_on_as_if_it_was_not(
    make_run: MakeRun, call: int
) -> None:
    sources = [*FIRST, *list(DRAFTS)[:4]]
    unbroken = settings(make_run, 2)
    await search_of(unbroken, sources)[0].engine.generations()
    run = settings(make_run, 2)
    with pytest.raises(BaseExceptionGroup) as killed:
        await search_of(run, sources, fuse=Fuse("propose", call))[0].engine.generations()
    assert killed.group_contains(Killed)
    run = open_run(run.folder)
    # the designer would give what it is asked for: all that follows the recorded proposals
    known = len(run.archive.attempts())
    left = sources[known:] if known < 3 else sources[4:]
    await search_of(run, left)[0].engine.generations()
    assert rows(run) == rows(unbroken)


STEPS = 30


def credit(values: np.ndarray, alignment: float = 0.0) -> Credit:
    """Credit for steps of these values, shape (3, steps)."""
    ranks = (values.argsort(axis=1).argsort(axis=1) + 0.5) / values.shape[1] - 0.5
    return Credit(
        step=alignment, to_go=alignment, advantage=alignment, ranks=tuple(ranks.ravel().tolist())
    )


@pytest.fixture
def values() -> np.ndarray:
    """Values of five rewards. Shape: (5, 3, steps)."""
    random = np.random.default_rng(3)
    return random.normal(size=(5, 3, STEPS)) + 0.7 * random.normal(size=(3, STEPS))


def test_it_is_the_one_of_the_gaussian_process(values: np.ndarray) -> None:
    """The posterior of 3 known and 2 unknown means, by adding up precisions."""
    agreement = [0.1, 0.5, -0.2, 0.3, 0.6]
    credits = [credit(each, found) for each, found in zip(values, agreement, strict=True)]
    fitness, trainings = np.array([3.0, 6.0, 4.0]), np.array([1, 4, 1])
    known = [
        Known(each, *numbers)
        for each, *numbers in zip(credits, fitness.tolist(), trainings.tolist(), strict=False)
    ]

    def nearness(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.mean([spearmanr(a, b).statistic for a, b in zip(x, y, strict=True)]))

    near = np.array([[nearness(x, y) for x in values] for y in values])
    z = (np.array(agreement) - np.mean(agreement)) / np.std(agreement)
    prior = 4.0 + 0.03 * np.outer(z, z)
    prior += 0.35 * np.exp(-(1.0 - near) / 0.25) + 0.15 * np.exp(-(1.0 - near) / 0.01)
    precision = np.linalg.inv(prior)
    information = precision @ (0.2 * z)
    scaled = (fitness - fitness.mean()) / fitness.std()
    for place in range(3):
        precision[place, place] += trainings[place] / 0.5
        information[place] += scaled[place] * trainings[place] / 0.5
    covariance = np.linalg.inv(precision)
    mean = covariance @ information
    best = mean[:3].argmax()
    expected = []
    for each in (3, 4):
        difference = np.zeros(5)
        difference[[each, best]] = 1.0, -1.0
        lead = norm(difference @ mean, (difference @ covariance @ difference) ** 0.5)
        expected.append(quad(lambda gain, lead=lead: gain * lead.pdf(gain), 0.0, 12.0)[0])
    found = expected_improvements(known, credits[3:])
    assert found == pytest.approx(np.array(expected) * fitness.std(), rel=1e-6)


def test_a_training_that_went_wrong_does_not_hide_the_others(values: np.ndarray) -> None:
    """Its fitness counts as 2 deviations below the median, by scipy's median deviation."""
    credits = [credit(each, 0.1 * place) for place, each in enumerate(values)]
    fitness = np.array([1.0, 2.0, 4.0, -1000.0])
    lowest = 1.5 - 2.0 * median_abs_deviation(fitness, scale="normal")

    def gains(worst: float) -> list[float]:
        numbers = (*fitness[:3].tolist(), worst)
        known = [Known(each, value, 1) for each, value in zip(credits, numbers, strict=False)]
        return expected_improvements(known, credits[4:])

    assert gains(-1000.0) == pytest.approx(gains(lowest))
    assert gains(-1000.0) != pytest.approx(gains(lowest + 0.5))


def test_equal_fitness_and_constant_rewards_are_no_fault() -> None:
    flat = Credit(step=0.0, to_go=0.0, advantage=0.0, ranks=(0.0,) * 6)
    found = expected_improvements([Known(flat, 0.0, 1), Known(flat, 0.0, 2)], [flat, flat])
    assert np.isfinite(found).all()
    assert found[0] == found[1] == pytest.approx(0.0, abs=1e-3)

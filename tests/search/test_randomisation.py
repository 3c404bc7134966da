"""The search over distributions of parameters: prior, choice, notices, and a kill at any point."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outcomes import make_outcome
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, TableTrials, reward

from eureka_agent import records
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.designer.distribution_writer import DistributionRequest
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import SettingsError
from eureka_agent.fleet.devices import Hardware
from eureka_agent.fleet.jobs import TrainingResult
from eureka_agent.journal.entries import Notice, RandomisationChanged
from eureka_agent.llm.budget import BudgetSpentError
from eureka_agent.parameters import DEFAULTS, Distribution
from eureka_agent.randomisation_records import CurriculumStage, RandomisedParameters
from eureka_agent.ranking import ranked
from eureka_agent.search.preparation import check_randomise
from eureka_agent.search.pruning import _kept
from eureka_agent.search.randomisation import Scorable, beginning
from eureka_agent.search.seeds import derive_seed, final_seeds
from eureka_agent.search.summary import run_overview, run_report
from eureka_agent.search.trial import TrialRequest, TrialRunner
from eureka_agent.settings import SearchSettings

MakeRun = Callable[..., Run]

MASS = records.ParameterSpec(name="mass", default=1.0, low=0.5, high=2.0, doc="factor on the mass")
SAFE = {"mass": (0.5, 2.0)}
SETTINGS = {"iterations": 1, "samples": 2, "finalists": 1, "final_seeds": 2, "randomise": 2}
SETTINGS |= {"baselines": False, "evaluation_episodes": 8, "scoring_episodes": 2}
SCRIPT = [reward(1), reward(2)]
TABLE: dict[str | tuple[str, int], float | str] = {reward(1): 2.0, reward(2): 7.0}
TABLE |= {reward(100): 6.0, reward(200): 1.0}
SEEDS = final_seeds(2)
# mean over the safe ranges: to choose by, and from other draws
OVER_RANGES = {"": (3.0, 3.5), "d1": (4.0, 9.0), "d2": (5.0, 2.0)}
PRIOR_SCORES = 9
SCORES = PRIOR_SCORES + 2 * 3 * len(SEEDS)
POINTS = {"write": 1, "score": SCORES, "ranges-scored": 6, "randomisation-changed": 3}
POINTS |= {"proposed": 4, "attempt-ended": 4, "attempt-repeated": 2, "trial": 12, "trained": 12}
"""Points at which the search can be killed, with how often an unbroken one passes them."""


@pytest.fixture
def description(description: records.TaskDescription) -> records.TaskDescription:
    return description.model_copy(update={"parameters": (MASS,)})


class ScoredTrials(TableTrials):
    """Trials that also score policies under distributions."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__(TABLE, fuse)
        self.scored: list[tuple[str, int, int, Distribution]] = []

    async def score(
        self, policy: Path, seed: int, episodes: int, parameters: Distribution = DEFAULTS
    ) -> records.Evaluation | None:
        self._fuse("score")
        label, _, training = policy.read_text().removeprefix("policy of ").partition("@")
        self.scored.append((label, seed, episodes, parameters))
        if dict(parameters) == SAFE:
            name = label.partition("+")[2]
            chosen_by = seed == derive_seed("parameter-choice", int(training))
            assert chosen_by or seed == derive_seed("held-out-parameters", int(training))
            return evaluation(OVER_RANGES[name][not chosen_by], episodes)
        # 10 at the default, and 4 less for each unit of mass
        (value,) = {bound for bounds in parameters.values() for bound in bounds} or {1.0}
        return evaluation(10.0 - 4.0 * abs(value - 1.0), episodes)


def evaluation(mean: float, episodes: int) -> records.Evaluation:
    """Episodes of this mean; those of the worst quarter are 1.5 below it."""
    worst = episodes // 4
    values = [mean - 1.5] * worst + [mean + 0.5] * (episodes - worst)
    values = values if worst else [mean] * episodes
    summaries = (
        records.EpisodeSummary(fitness=each, length=1, ended_by="time_out") for each in values
    )
    return records.Evaluation(episodes=tuple(summaries), seed=0)


class Writer:
    """Writes one distribution, however many are asked for."""

    def __init__(self, fuse: Fuse, error: Exception | None = None) -> None:
        self.requests: list[DistributionRequest] = []
        self._fuse = fuse
        self._error = error

    async def write(
        self, request: DistributionRequest
    ) -> tuple[tuple[RandomisedParameters, ...], tuple[str, ...]]:
        self._fuse("write")
        self.requests.append(request)
        if self._error is not None:
            raise self._error
        stages = (
            CurriculumStage(begins=0.0, parameters={}),
            CurriculumStage(begins=0.5, parameters={"mass": (0.6, 1.5)}),
        )
        name = f"d{len(request.known) + 1}"
        found = RandomisedParameters(name=name, reason="a load", author="m", curriculum=stages)
        return (found,), ("the other one is no JSON",)


def search_with(
    run: Run, fuse: Fuse, writer: Writer | None = None
) -> tuple[ScriptedSearch, ScoredTrials, list[Any]]:
    entries: list[Any] = []

    def observe(entry: Any) -> None:
        entries.append(entry)
        kind = type(entry).model_fields["kind"].default
        if kind in POINTS:
            fuse(kind)

    known = len(run.archive.attempts())
    trials = ScoredTrials(fuse)
    designer = ScriptedDesigner(SCRIPT[known:])
    search = ScriptedSearch(run, designer, trials, observer=observe, writer=writer)
    return search, trials, entries


def winner_of(run: Run) -> records.Attempt:
    """The winner of all runs here, with what is known of distributions."""
    return run.archive.state.by_id["1-02"]


def under(run: Run) -> dict[str, records.Attempt]:
    """Attempts under distributions, by their names."""
    found = run.archive.state.randomised("1-02")
    return {each.proposal.distribution.name: each for each in found if each.proposal.distribution}


def results(run: Run) -> dict[str, Any]:
    """Results that must not depend on a kill."""
    known = {name: run.archive.state.by_id[name] for name in ("1-02", "1-02+d1", "1-02+d2")}
    return {
        **{name: each.model_dump(exclude={"created", "verdict"}) for name, each in known.items()},
        "kept": (run.folder / "randomised" / "policy.safetensors").read_text(),
    }


def trained(trials: TableTrials) -> list[tuple[str, int]]:
    """Label and seed of each training under a distribution."""
    return sorted((each.label, each.seed) for each in trials.requests if each.curriculum)


async def test_prior_distributions_and_the_choice(make_run: MakeRun) -> None:
    run, fuse = make_run(**SETTINGS), Fuse()
    writer = Writer(fuse)
    search, trials, entries = search_with(run, fuse, writer)
    await search.see_through()
    winner, attempts = winner_of(run), under(run)
    found = winner.randomisation
    assert found is not None
    assert found.prior is not None
    # the floor is the first checkpoint, 7, where there is no curve: 8.5 is half of the gain
    assert (found.prior.base, found.prior.floor, found.prior.episodes) == (10.0, 7.0, 2)
    assert found.prior.ranges == {"mass": (0.7071, 1.189)}
    assert len({seed for label, seed, *_ in trials.scored if label == "1-02"}) == 1 + 2 * 2

    assert [(each.name, each.author, each.text) for each in found.distributions] == [
        ("d1", "m", "defaults; from 50 %: mass=0.6..1.5"),
        ("d2", "offline", "mass=0.7071..1.189"),
    ]
    (notice,) = [each for each in entries if isinstance(each, Notice)]
    assert notice.text == "1 distribution is the offline designer's: the other one is no JSON"
    assert (writer.requests[0].count, writer.requests[0].known) == (2, ())

    assert trained(trials) == sorted(
        (f"1-02+{name}", seed) for name in ("d1", "d2") for seed in SEEDS
    )
    steps = run.settings.env_steps
    asked = [each for each in trials.requests if each.curriculum]
    stages = {each.label: [stage.env_steps for stage in each.curriculum] for each in asked}
    assert stages == {"1-02+d1": [0, steps // 2], "1-02+d2": [0]}
    assert all(each.rungs == () for each in asked)

    # d2 is the best by the draws to choose by, though not by the others
    assert (found.best, found.seed) == ("d2", min(SEEDS))  # both seeds are at the mean
    (score, _) = attempts["d2"].range_scores
    assert score.choice is not None
    assert score.held_out is not None
    assert (score.fitness, score.choice.mean) == (7.0, 5.0)
    assert (score.held_out.mean, score.held_out.worst_quarter) == (2.0, 0.5)
    assert [each.seed for each in winner.range_scores] == sorted(SEEDS)
    kept = json.loads((run.folder / "randomised" / "distribution.json").read_text())
    assert (kept["attempt"], kept["name"]) == ("1-02", "d2")
    assert kept["curriculum"] == [{"begins": 0.0, "parameters": {"mass": [0.7071, 1.189]}}]
    assert (
        (run.folder / "randomised/policy.safetensors").read_text().startswith("policy of 1-02+d2@")
    )
    # none of them is a finalist
    assert {each.name for each in run.archive.trainings()} == {"1-02", "human", "sparse"}


async def test_a_distribution_is_an_attempt_that_ranks_nowhere(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS:  # better than all trainings of the search
        monkeypatch.setitem(TABLE, (reward(2), seed), 9.0)
    run = make_run(**SETTINGS)
    await search_with(run, Fuse())[0].see_through()
    first = under(run)["d1"]
    assert (first.id, first.stage, first.seed) == ("1-02+d1", records.Stage.TRAINED, SEEDS[0])
    assert first.proposal.parents == ("1-02",)
    assert first.proposal.reward.source == reward(2)
    assert set(first.outcomes) == set(SEEDS)
    folder = run.folder / "attempts" / "1-02+d1"
    assert (folder / "policy.safetensors").is_file()
    assert (folder / f"seed-{SEEDS[1]}" / "policy.safetensors").is_file()

    assert [each.id for each in run.archive.attempts()] == ["1-01", "1-02"]
    for report in (run_report(run), run_overview(run)):
        assert [each.id for each in report.attempts] == ["1-01", "1-02"]
        assert [each.id for each in report.randomised] == ["1-02+d1", "1-02+d2"]
        assert (report.best and report.best.id) == "1-02"
        assert [each.id for each in ranked(report.all_attempts)] == ["1-02", "1-01"]
        cost = report.cost
        assert (cost.search_trainings, cost.randomised_trainings, cost.trainings) == (2, 4, 12)
    assert open_run(run.folder, reading=True).archive.attempt("1-02+d1") == first
    assert {"1-02+d1", "1-02+d2"} <= _kept(run)  # by pruning


@pytest.fixture
async def unbroken(make_run: MakeRun) -> dict[str, Any]:
    run, fuse = make_run(**SETTINGS), Fuse()
    await search_with(run, fuse, Writer(fuse))[0].see_through()
    assert fuse.calls == POINTS
    return results(run)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        # the unbroken search has left four baselines in the cache
        *[("score", 1), ("score", 10), ("score", 21), ("trial", 6), ("trained", 8)],
        *[("proposed", 4), ("attempt-ended", 3), ("attempt-repeated", 2), ("ranges-scored", 3)],
        *[("randomisation-changed", 2), ("randomisation-changed", 3), ("write", 1)],
    ],
)
async def test_killed_and_resumed_it_does_nothing_twice(
    make_run: MakeRun, unbroken: dict[str, Any], kind: str, number: int
) -> None:
    run, fuse = make_run(**SETTINGS), Fuse(kind, number)
    killed = False
    try:
        await search_with(run, fuse, Writer(fuse))[0].see_through()
    except* Killed:
        killed = True
    assert killed

    resumed = open_run(run.folder)
    known, before = winner_of(resumed), under(resumed).values()
    found = known.randomisation
    ended = Counter(
        each.id
        for each in before
        for seed in each.outcomes
        if seed != each.seed or each.stage is not records.Stage.PROPOSED
    )
    scored = sum(len(each.range_scores) for each in (known, *before))
    fuse = Fuse()
    writer = Writer(fuse)
    search, trials, _ = search_with(resumed, fuse, writer)
    await search.see_through()
    assert results(resumed) == unbroken
    assert len(writer.requests) == (found is None or not found.distributions)
    priors = PRIOR_SCORES * (found is None or found.prior is None)
    assert fuse.calls["score"] == priors + 2 * (6 - scored)
    labels = Counter(label for label, _ in trained(trials))
    assert labels == Counter({"1-02+d1": 2, "1-02+d2": 2}) - ended


async def test_a_resumed_run_adds_distributions_and_seeds(make_run: MakeRun) -> None:
    run, fuse = make_run(**{**SETTINGS, "randomise": 1, "final_seeds": 1}), Fuse()
    await search_with(run, fuse)[0].see_through()
    first = winner_of(run).randomisation
    run.settings = run.settings.model_copy(update={"randomise": 2, "final_seeds": 2})
    search, trials, _ = search_with(run, fuse)
    await search.see_through()
    found = results(run)
    assert first is not None
    assert winner_of(run).randomisation.prior == first.prior
    assert list(under(run)) == ["d1", "d2"]
    assert trained(trials) == sorted(
        [("1-02+d1", SEEDS[1]), ("1-02+d2", SEEDS[0]), ("1-02+d2", SEEDS[1])]
    )
    # nothing is left to do
    search, trials, _ = search_with(run, fuse)
    await search.see_through()
    assert trials.requests == []
    assert trials.scored == []
    assert results(run) == found


async def test_without_a_model_that_answers_the_offline_ones_are_taken(make_run: MakeRun) -> None:
    run, fuse = make_run(**SETTINGS), Fuse()
    writer = Writer(fuse, BudgetSpentError("the money is spent"))
    search, _, entries = search_with(run, fuse, writer)
    await search.see_through()
    assert [each.proposal.reward.author for each in under(run).values()] == ["offline", "offline"]
    (notice,) = [each for each in entries if isinstance(each, Notice)]
    assert notice.text == "2 distributions are the offline designer's: the money is spent"


async def test_where_training_gained_nothing_it_ends(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLE, reward(2), 10.0)  # at its beginning, too
    run, fuse = make_run(**SETTINGS), Fuse()
    search, trials, entries = search_with(run, fuse)
    await search.see_through()
    found = winner_of(run).randomisation
    expected = (
        "training gained nothing (fitness 10.00, at its beginning 10.00), so no value can be told to"
        " work"
    )
    assert found is not None
    assert (found.best, found.text) == (None, expected)
    last = [each for each in entries if isinstance(each, RandomisationChanged)][-1]
    assert last.line(run.archive.state) == f"no distribution of parameters is chosen: {expected}"
    assert trained(trials) == []


def test_the_beginning_of_a_curve_is_the_mean_of_its_first_episodes(tmp_path: Path) -> None:
    outcome = make_outcome(5.0)
    control = Scorable(7, outcome, tmp_path)
    assert beginning(control) == 5.0  # the first checkpoint, without a curve
    fitness = ["", "1.0", "3.0", *["9.0"] * 98]
    rows = [f"{place},{value}" for place, value in enumerate(fitness)]
    (tmp_path / "curves.csv").write_text("\n".join(["env_steps,fitness", *rows]))
    assert beginning(control) == 2.0  # two of a hundred


async def test_a_trial_chooses_under_the_last_stage_and_is_scored_at_the_defaults(
    tmp_path: Path,
) -> None:
    (tmp_path / "policy").write_text("")
    outcome = make_outcome(5.0).model_copy(
        update={"checkpoints": make_outcome(5.0).checkpoints * 2}
    )
    policies = dict.fromkeys((0, 1), tmp_path / "policy")
    trained: list[Any] = []
    scored: list[Distribution] = []

    class Trainings:
        async def train(self, *arguments: object, **options: Any) -> TrainingResult:
            trained.append(options["curriculum"])
            return TrainingResult(outcome, (), policies)

    class Evaluator:
        async def evaluate(
            self, *arguments: object, parameters: Distribution = DEFAULTS
        ) -> records.Evaluation:
            scored.append(parameters)
            return evaluation(1.0, 4)

    stages = (
        records.ParameterStage(env_steps=0, parameters={}),
        records.ParameterStage(env_steps=5, parameters=SAFE),
    )
    trials: Any = (Trainings(), Evaluator(), SnapshotStore(tmp_path))
    runner = TrialRunner(*trials, 4, None, lambda entry: None, 4)
    given = given_reward(reward(1))
    await runner.run(
        TrialRequest("1-01+d1", "search", given, 7, tmp_path / "training", curriculum=stages)
    )
    assert trained == [stages]
    assert [dict(each) for each in scored] == [SAFE, SAFE, {}]


def test_parameters_of_the_model_need_a_cpu(description: records.TaskDescription) -> None:
    described = description.model_copy(
        update={"parameters": (MASS.model_copy(update={"of_model": True}),)}
    )
    settings = SearchSettings(randomise=1)
    check_randomise(settings, described, Hardware(("cpu",)))
    with pytest.raises(SettingsError, match="on a GPU all have one model, so that mass cannot"):
        check_randomise(settings, described, Hardware(("cuda:0",)))
    check_randomise(settings, description, Hardware(("cuda:0",)))


@pytest.mark.parametrize(
    ("changes", "parameters", "message"),
    [
        ({}, (), "the environment 'cart' declares none"),
        ({"fitness": "judged"}, (MASS,), "--fitness judged has none"),
        ({"iterations": 0}, (MASS,), "--iterations 0 searches for none"),
    ],
)
def test_what_cannot_be_randomised_is_told_before(
    description: records.TaskDescription,
    changes: dict[str, Any],
    parameters: tuple[records.ParameterSpec, ...],
    message: str,
) -> None:
    described = description.model_copy(update={"parameters": parameters, "environment": "cart"})
    settings = SearchSettings(randomise=2, **changes)
    with pytest.raises(SettingsError, match=message) as caught:
        check_randomise(settings, described)
    assert "leave --randomise out" in (caught.value.hint or "")
    check_randomise(SearchSettings(**changes), described)

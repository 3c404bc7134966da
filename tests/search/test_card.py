"""The difficulty card of a task, from made-up trainings whose figures follow by hand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from outcomes import make_outcome
from planned_attempts import started

from eureka_agent import records
from eureka_agent.archive.cache import trainer_files
from eureka_agent.archive.run_folder import versions
from eureka_agent.cards import TRAINER, TRAINER_FILES, Card, CardReward, card_path, read_card
from eureka_agent.journal.entries import RunCreated
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.report.progress import trainings_total
from eureka_agent.rewards import baseline
from eureka_agent.search.card import NoCardError, final_trainings_of, make_card, why_stale
from eureka_agent.search.scoring import score, score_table
from eureka_agent.search.seeds import final_seeds
from eureka_agent.settings import SearchSettings, TrainingSettings, training_part


def training(
    name: str, seed: int, curve: Sequence[float | None], fitness: float
) -> records.FinalTraining:
    checkpoints = tuple(
        records.CheckpointRecord(
            env_steps=100 * (index + 1),
            fitness=value,
            episode_length=None,
            episodes=0,
            reward=0.0,
            components={},
        )
        for index, value in enumerate(curve)
    )
    outcome = records.Outcome(
        env_steps=400,
        seconds=1.0,
        checkpoints=checkpoints,
        best_checkpoint=3,
        training_fitness=curve[-1],
        fitness=fitness,
    )
    return records.FinalTraining(name=name, seed=seed, outcome=outcome)


HUMAN = [
    training("human", 1, (None, 3.0, 8.0, 9.0), 10.0),
    training("human", 2, (1.0, 5.0, 10.0, 9.0), 9.0),
    training("human", 3, (1.0, 4.0, 9.0, 10.0), 11.0),
]
SPARSE = [
    training("sparse", 1, (1.0, 1.0, 1.0, 1.0), 1.0),
    training("sparse", 2, (1.0, 1.0, 2.0, 6.0), 5.5),
    training("sparse", 3, (1.0, 1.0, 1.0, 2.0), 2.0),
]


@pytest.fixture
def make(description: records.TaskDescription) -> Card:
    return made_from(description, [*HUMAN, *SPARSE])


def made_from(
    description: records.TaskDescription,
    trainings: Sequence[records.FinalTraining],
    success: float | None = 8.0,
    untrained: float = 1.0,
) -> Card:
    random = records.UntrainedScore(mean=untrained, std=0.0, length=1.0, episodes=4)
    measured = records.Measurements(random_actions=random)
    changes = {"measured": measured, "success_fitness": success}
    settings = TrainingSettings(env_steps=400, num_envs=4)
    return make_card(description.model_copy(update=changes), trainings, settings, {}, {})


def test_scores_are_means_and_deviations_over_the_seeds(make: Card) -> None:
    assert (make.human.mean, make.human.std) == (10.0, 1.0)
    assert make.sparse.mean == pytest.approx(8.5 / 3)
    assert make.decides == "human"
    assert make.human.learns


def test_a_seed_has_learned_from_half_way_to_a_solved_episode(
    description: records.TaskDescription,
) -> None:
    """Half way from 1 to 8 is 4.5: of the sparse seeds 1, 5.5 and 2 one is above. Without a solved
    fitness it is half way to the better mean, 10: 5.5, which that seed reaches exactly."""
    trainings = [*HUMAN, *SPARSE]
    assert made_from(description, trainings).sparse.learned == 1
    assert made_from(description, trainings).human.learned == 3
    assert made_from(description, trainings, success=None).sparse.learned == 1
    assert made_from(description, trainings, success=11.0).sparse.learned == 0


def test_the_curve_is_the_mean_of_the_seeds_with_its_extremes(make: Card) -> None:
    found = [(point.env_steps, point.mean, point.low, point.high) for point in make.human.curve]
    assert found == [
        (100, 1.0, 1.0, 1.0),  # one seed had no episode yet
        (200, 4.0, 3.0, 5.0),
        (300, 9.0, 8.0, 10.0),
        (400, pytest.approx(28 / 3), 9.0, 10.0),
    ]


def test_env_steps_to_the_level_are_those_of_most_of_the_way(make: Card) -> None:
    """The human curve's best point is 9.33; nine tenths of the way from 1 are 8.5, reached at 300.
    The sparse curve ends at 3."""
    assert make.human.env_steps_to_level == 300
    assert make.sparse.env_steps_to_level is None


def test_a_human_reward_that_does_not_learn_has_no_level(
    description: records.TaskDescription,
) -> None:
    poor = [training("human", seed, (1.0, 1.0, 1.1, 1.2), 1.2) for seed in (1, 2, 3)]
    found = made_from(description, [*poor, *SPARSE])
    assert not found.human.learns
    assert (found.human.learned, found.human.env_steps_to_level) == (0, None)
    assert found.decides == "neither"


def test_a_baseline_that_never_ended_makes_no_card(description: records.TaskDescription) -> None:
    failed = [records.FinalTraining(name="sparse", seed=1, outcome=None, failure="nan")]
    with pytest.raises(NoCardError, match="the sparse reward of task"):
        made_from(description, [*HUMAN, *failed])


def test_another_task_s_card_and_absurd_numbers_are_no_card(tmp_path: Path, make: Card) -> None:
    path = card_path(tmp_path, make.task)
    path.parent.mkdir()
    values = make.model_dump(mode="json")
    path.write_text(json.dumps(values))
    assert read_card(tmp_path, make.task) == make
    path.rename(card_path(tmp_path, "other"))
    assert read_card(tmp_path, "other") is None
    absurd = 10**400
    for changed in (
        {"env_steps": absurd},
        {"budget": absurd},
        {"num_envs": -1},
        {"human": {**values["human"], "env_steps_to_level": absurd}},
        {"sparse": {**values["sparse"], "learned": absurd}},
    ):
        path.write_text(json.dumps({**values, **changed}))
        assert read_card(tmp_path, make.task) is None


SETTINGS = SearchSettings(env_steps=400, num_envs=4)


@pytest.fixture
def card(description: records.TaskDescription) -> Card:
    """A card that holds for `SETTINGS` on a CPU, here and now."""

    def reward(*fitness: float | None) -> CardReward:
        known = [value for value in fitness if value is not None]
        return CardReward(
            fitness=fitness,
            mean=sum(known) / len(known),
            std=1.0,
            learned=1,
            env_steps_to_level=None,
            curve=(),
            ended_by=({"time_out": 3, "fell": 1},) * len(fitness),
        )

    return Card(
        task=description.task,
        fingerprint=description.fingerprint,
        unit="s",
        env_steps=400,
        num_envs=4,
        untrained=0.0,
        level=9.0,
        human=reward(8.0, 9.0, 10.0),
        sparse=reward(0.0, None, 0.0),
        decides="human",
        minutes={},
        packages={"torch": "1.0", "gymnasium": versions()["gymnasium"]},
        measured="2026-11-28",
        trainer=TRAINER,
        device="cpu",
        settings={
            **training_part(SETTINGS).model_dump(mode="json"),
            "evaluation_episodes": SETTINGS.evaluation_episodes,
            "scoring_episodes": SETTINGS.scoring_episodes,
        },
    )


def test_the_trainer_is_the_one_that_the_cards_name() -> None:
    """It fails after every change of a file that trains. Do scores stay the same, to the bit or but
    for the seeds' noise? Then `TRAINER_FILES` alone is renewed. Else `TRAINER` is raised, and the
    cards in `envs` are measured again (`eureka envs --measure`)."""
    assert trainer_files() == TRAINER_FILES, f'TRAINER_FILES = "{trainer_files()}"'


def test_a_card_holds_where_all_that_its_scores_depend_on_is_the_same(
    card: Card, description: records.TaskDescription
) -> None:
    assert why_stale(card, description, SETTINGS, "cpu") == ""
    # the noise of another torch is that of other seeds
    assert card.packages["torch"] != versions()["torch"]


GYMNASIUM = versions()["gymnasium"]


@pytest.mark.parametrize(
    ("change", "setting", "why"),
    [
        ({"fingerprint": "other"}, {}, "was measured before the environment's files changed"),
        ({"settings": {}}, {}, "does not say how it was measured"),
        ({"trainer": TRAINER + 1}, {}, "was measured with another trainer"),
        ({"device": "cuda"}, {}, "was measured on a device of kind cuda, not cpu"),
        (
            *({"packages": {"gymnasium": "0.1"}}, {}),
            f"was measured with gymnasium 0.1, and {GYMNASIUM} is here",
        ),
        ({}, {"epochs": 7}, "was measured with epochs 3, and it is 7 here"),
        (
            *({}, {"evaluation_episodes": 5}),
            "was measured with evaluation_episodes 32, and it is 5 here",
        ),
        ({}, {"baseline_seeds": 4}, "has 3 seeds, fewer than --baseline-seeds"),
    ],
)
def test_a_stale_card_says_why(
    card: Card,
    description: records.TaskDescription,
    change: dict[str, Any],
    setting: dict[str, Any],
    why: str,
) -> None:
    settings = SETTINGS.model_copy(update=setting)
    assert why_stale(card.model_copy(update=change), description, settings, "cpu") == why


def test_scores_of_a_card_are_final_trainings_from_its_seeds(card: Card) -> None:
    trainings = final_trainings_of(card, 400)
    human, sparse = score_table(trainings)
    assert (human.name, human.seeds, human.fitness) == ("human", final_seeds(3), (8.0, 9.0, 10.0))
    assert (sparse.fitness, sparse.mean) == ((0.0, None, 0.0), 0.0)
    assert human.origin == "from the card"
    assert sum(each.outcome.ended_by["fell"] for each in trainings if each.outcome) == 5


def test_a_score_of_a_card_stands_at_the_seed_that_it_is_of(card: Card) -> None:
    """A card is made from trainings by their seeds, whose order is not that of the final seeds."""
    seeds = final_seeds(8)
    assert sorted(seeds) != list(seeds)
    trained = score(
        "human",
        [
            records.FinalTraining(name="human", seed=seed, outcome=make_outcome(float(place)))
            for place, seed in enumerate(seeds)
        ],
    )
    human = card.human.model_copy(update={"fitness": trained.fitness, "ended_by": ()})
    taken, _ = score_table(final_trainings_of(card.model_copy(update={"human": human}), 400))
    assert dict(zip(taken.seeds, taken.fitness, strict=True)) == {
        seed: float(place) for place, seed in enumerate(seeds)
    }


def test_another_process_that_follows_a_run_waits_for_no_baseline_of_its_card(
    card: Card, description: records.TaskDescription
) -> None:
    """One proposal, and five seeds of its reward."""
    settings = SETTINGS.model_copy(update={"iterations": 1, "samples": 1, "finalists": 1})
    baselines = dict.fromkeys(("human_reward", "sparse_reward"), baseline("reward"))
    began = started(description.model_copy(update=baselines), settings)
    state = RunState()
    for number, entry in enumerate((RunCreated(card=card), began)):
        read = type(entry).model_validate_json(entry.model_dump_json())
        state.apply(Recorded(number, "", 0.0, read))
    assert trainings_total(state) == 1 + 5


@pytest.fixture
def mine(puck: Path, tmp_path: Path) -> Path:
    """A person's own environment, without a card."""
    folder = Path(shutil.copytree(puck, tmp_path / "mine"))
    (folder / "cards").unlink()
    return folder


@pytest.fixture
def search(tmp_path: Path, mine: Path) -> Callable[..., dict[str, Any]]:
    """Searches of one proposal, each with a runs folder of its own, so that no cache helps."""
    made = list[CommandLine]()

    def run(*flags: str) -> dict[str, Any]:
        folder = tmp_path / f"place-{len(made)}"
        folder.mkdir()
        made.append(CommandLine(folder))
        sizes = ("--iterations", "1", "--samples", "1", "--finalists", "1", "--final-seeds", "3")
        words = ("search", "bring the puck to the middle of the rail", "--env", str(mine))
        found: dict[str, Any] = made[-1].json(*words, *sizes, *flags)
        return {**found, "folder": str(folder / found.get("folder", ""))}

    return run


def report_of(found: dict[str, Any]) -> str:
    return (Path(found["folder"]) / "report.md").read_text()


@pytest.mark.slow
def test_the_first_search_of_an_environment_makes_its_card_and_the_second_takes_it(
    search: Callable[..., dict[str, Any]], mine: Path
) -> None:
    first = search()
    card = read_card(mine, "centre")
    assert card is not None
    assert list(card.human.fitness) == first["human"]["fitness_per_seed"]
    assert first["cost"]["baseline_trainings"] == 6
    assert not first["human"]["cached"]

    second = search()
    assert second["cost"]["baseline_trainings"] == 0
    for name in records.BASELINES:
        assert second[name]["fitness_per_seed"] == first[name]["fitness_per_seed"]
    assert f"both baselines are from {card.origin}" in report_of(second)
    assert search("--plan")["baselines"] == 0

    asked = search("--train-baselines", "--plan")
    assert asked["baselines"] == 6

    # another environment from now on, by the files alone
    source = mine / "env.py"
    source.write_text(source.read_text().replace("0.3 * actions", "0.2 * actions"))
    changed = search()
    assert changed["cost"]["baseline_trainings"] == 6
    why = "unless an earlier run here has done so: the task's card was measured before the environment's files changed"
    assert any(why in remark for remark in changed["remarks"])
    assert "both baselines are from" not in report_of(changed)
    renewed = read_card(mine, "centre")
    assert renewed is not None
    assert renewed.fingerprint != card.fingerprint
    assert list(renewed.human.fitness) == changed["human"]["fitness_per_seed"]

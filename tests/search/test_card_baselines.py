"""A search takes the human and the sparse reward's scores from the task's card, where that holds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from outcomes import make_outcome

from eureka_agent.archive.cache import trainer_files
from eureka_agent.archive.run_folder import versions
from eureka_agent.cards import TRAINER, TRAINER_FILES, Card, CardReward, card_path, read_card
from eureka_agent.journal.entries import RunCreated, RunStarted
from eureka_agent.journal.state import Recorded, RunState
from eureka_agent.records import BASELINES, FinalTraining, TaskDescription
from eureka_agent.report.progress import trainings_total
from eureka_agent.rewards import baseline
from eureka_agent.search.card import final_trainings_of, why_stale
from eureka_agent.search.lineage import seed_spread
from eureka_agent.search.scoring import score, score_table
from eureka_agent.search.seeds import final_seeds
from eureka_agent.settings import SearchSettings, training_part

SETTINGS = SearchSettings(env_steps=400, num_envs=4)


@pytest.fixture
def card(description: TaskDescription) -> Card:
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
    card: Card, description: TaskDescription
) -> None:
    assert why_stale(card, description, SETTINGS, "cpu") == ""
    # the noise of another torch is that of other seeds
    assert card.packages["torch"] != versions()["torch"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"fingerprint": "other"}, "was measured before the environment's files changed"),
        ({"settings": {}}, "is of an earlier version"),
        ({"trainer": TRAINER + 1}, "was measured with another trainer"),
        ({"device": "cuda"}, "was measured on a device of kind cuda, not cpu"),
        (
            {"packages": {"gymnasium": "0.1"}},
            f"was measured with gymnasium 0.1, and {versions()['gymnasium']} is here",
        ),
    ],
)
def test_a_stale_card_says_why(
    card: Card, description: TaskDescription, change: dict[str, Any], why: str
) -> None:
    assert why_stale(card.model_copy(update=change), description, SETTINGS, "cpu") == why


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ({"epochs": 7}, "was measured with epochs 3, and it is 7 here"),
        ({"evaluation_episodes": 5}, "was measured with evaluation_episodes 32, and it is 5 here"),
        ({"hidden_sizes": (8,)}, "was measured with hidden_sizes [64, 64], and it is [8] here"),
        ({"baseline_seeds": 4}, "has 3 seeds, fewer than --baseline-seeds"),
    ],
)
def test_a_card_of_other_trainings_says_which(
    card: Card, description: TaskDescription, setting: dict[str, Any], why: str
) -> None:
    settings = SETTINGS.model_copy(update=setting)
    assert why_stale(card, description, settings, "cpu") == why


def test_changed_code_of_the_trainer_makes_cards_stale(
    card: Card, description: TaskDescription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eureka_agent.search.card.trainer_files", lambda: "edited")
    assert why_stale(card, description, SETTINGS, "cpu") == "was measured with another trainer"


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
            FinalTraining(name="human", seed=seed, outcome=make_outcome(float(place)))
            for place, seed in enumerate(seeds)
        ],
    )
    human = card.human.model_copy(update={"fitness": trained.fitness, "ended_by": ()})
    taken, _ = score_table(final_trainings_of(card.model_copy(update={"human": human}), 400))
    assert dict(zip(taken.seeds, taken.fitness, strict=True)) == {
        seed: float(place) for place, seed in enumerate(seeds)
    }


def test_another_process_that_follows_a_run_waits_for_no_baseline_of_its_card(
    card: Card, description: TaskDescription
) -> None:
    """One proposal, and five seeds of its reward."""
    settings = SETTINGS.model_copy(update={"iterations": 1, "samples": 1, "finalists": 1})
    baselines = dict.fromkeys(("human_reward", "sparse_reward"), baseline("reward"))
    started = RunStarted(
        run_name="",
        description=description.model_copy(update=baselines),
        sentence="",
        settings=settings,
        wall="",
        designer="",
    )
    state = RunState()
    for number, entry in enumerate((RunCreated(card=card), started)):
        read = type(entry).model_validate_json(entry.model_dump_json())
        state.apply(Recorded(number, "", 0.0, read))
    assert trainings_total(state) == 1 + 5


def test_a_baseline_that_always_comes_to_the_same_tells_nothing_of_noise(card: Card) -> None:
    """The deviation of 8, 9 and 10 is 1; with the two zeros pooled it would be 0.82."""
    assert seed_spread((), score_table(final_trainings_of(card, 400))) == 1.0


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
    for name in BASELINES:
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
    why = "the task's card was measured before the environment's files changed"
    assert any(why in remark for remark in changed["remarks"])
    assert "both baselines are from" not in report_of(changed)
    renewed = read_card(mine, "centre")
    assert renewed is not None
    assert renewed.fingerprint != card.fingerprint
    assert list(renewed.human.fitness) == changed["human"]["fitness_per_seed"]


@pytest.mark.slow
def test_a_search_with_other_trainings_leaves_the_card_as_it_is(
    search: Callable[..., dict[str, Any]], mine: Path
) -> None:
    search("--env-steps", "1024")
    assert not card_path(mine, "centre").exists()
    search("--iterations", "0")  # which trains the two rewards without a card
    assert not card_path(mine, "centre").exists()

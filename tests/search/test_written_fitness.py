"""Conditions for writing a fitness, and what a run keeps of one; without workers."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from policy_files import save_random_policy

from eureka_agent.archive.database import Archive
from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import EurekaError, SettingsError, WorkerFaultError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem
from eureka_agent.journal.entries import BaseEntry, Notice, RunCreated
from eureka_agent.llm.budget import ModelLimits
from eureka_agent.llm.interface import Completion, CompletionRequest, FinishReason
from eureka_agent.records import Message, TaskDescription, Verdict, WrittenFitness
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.models import Models
from eureka_agent.search.summary import run_report
from eureka_agent.search.written_fitness import (
    Acceptance,
    AcceptedFitness,
    accepted_fitness,
    check_fitness_setting,
    keep_in_run,
)
from eureka_agent.settings import SearchSettings, TrainingSettings
from eureka_agent.training.evaluation import load_trajectories

FITNESS = WrittenFitness(
    sentence="keep the cart still",
    source=(
        "def compute_reward(cart_position):\n    return cart_position, {'position':"
        " cart_position}\n"
    ),
    doc="stillness",
    reduction="mean",
    author="openai/tiny",
)


async def confirm(fitness: WrittenFitness, verdict: Verdict, kept: Path) -> Acceptance | None:
    raise AssertionError("nobody should be asked")


def settings(**values: object) -> SearchSettings:
    return SearchSettings.model_validate(
        {"fitness": "written", "model": "openai/tiny", "sentence": "wave a leg", **values}
    )


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"model": "offline"}, "needs a language model"),
        ({"sentence": None}, "needs the task in plain words, found None"),
        ({"sentence": "?!"}, "found '?!'"),
    ],
)
def test_a_model_and_a_sentence_are_needed(values: dict[str, object], part: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_fitness_setting(settings(**values), None, confirm)
    assert part in caught.value.message
    check_fitness_setting(settings(), None, confirm)
    check_fitness_setting(
        settings(fitness="task", **values), None, None
    )  # nothing is to be written


class SlowModel:
    """Answers when it is let."""

    name = "openai/tiny"
    retries = None

    def __init__(self) -> None:
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def complete(self, request: CompletionRequest) -> Completion:
        self.asked.set()
        await self.may_answer.wait()
        return Completion(text="paid for", finish_reason=FinishReason.STOP)


class DescribedTask:
    """All that is asked of a dry runner before there is a reply."""

    def __init__(self, description: TaskDescription) -> None:
        self.description = description


async def test_a_reply_that_is_under_way_when_it_is_stopped_is_kept(
    tmp_path: Path, description: TaskDescription
) -> None:
    model, told = SlowModel(), asyncio.Event()
    models = Models((model,), None, None, {}, ModelLimits(), None, None)

    def observer(event: BaseEntry) -> None:
        if isinstance(event, Notice) and "paid for" in event.text:
            told.set()

    work = accepted_fitness(
        settings(), models, DescribedTask(description), tmp_path, confirm, observer
    )  # type: ignore[arg-type]
    task = asyncio.create_task(work)
    await model.asked.wait()
    task.cancel()
    await told.wait()
    model.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    archive = Archive(tmp_path / ".fitness")
    assert [message.reply for message in archive.messages()] == ["paid for"]
    archive.close()


MakeRun = Callable[..., Run]


@pytest.fixture
def run(make_run: MakeRun) -> Run:
    """A new run by a written fitness, whose messages are still where they were asked for."""
    run = make_run(fitness="written")
    run.description = run.description.model_copy(update={"fitness_author": "openai/tiny"})
    drafts = run.folder.parent / ".fitness"
    drafts.mkdir()
    stored = Archive(drafts)
    for key in ("first", "second", "of another run"):
        stored.put(key, Message(role="metric", model="openai/tiny", request="?", reply=key))
    stored.close()
    accepted = AcceptedFitness(FITNESS, "accepted by --yes at the start", ("first", "second"), 0.0)
    run.archive.append(RunCreated(**accepted.recorded()))
    return run


def test_a_run_keeps_its_fitness_and_what_it_took_once(run: Run) -> None:
    assert run.written_fitness == FITNESS
    keep_in_run(run)
    keep_in_run(run)
    assert [message.reply for message in run.archive.messages()] == ["first", "second"]
    assert (run.folder / "fitness.py").read_text() == FITNESS.source
    words = json.loads((run.folder / "fitness.json").read_text())
    assert (words["doc"], words["accepted"]) == ("stillness", "accepted by --yes at the start")
    assert "source" not in words
    assert run.fitness_origin == "fitness written by openai/tiny, accepted by --yes at the start"
    assert run_report(run).fitness_origin == run.fitness_origin
    assert run_report(run).written_fitness == FITNESS


PROGRESS = WrittenFitness(
    sentence="bring the puck nearer to the middle",
    source=(
        "def compute_reward(puck_position, previous_puck_position, actions):\n"
        "    nearer = previous_puck_position.abs() - puck_position.abs()\n"
        "    effort = -0.125 * actions.square().sum(dim=-1)\n"
        "    return nearer + effort, {'nearer': nearer, 'effort': effort}\n"
    ),
    doc="metres nearer to the middle, less the effort",
    unit="m",
    reduction="sum",
    success_fitness=0.5,
    author="openai/tiny",
)
FASTEST = PROGRESS.model_copy(
    update={
        "source": (
            "def compute_reward(puck_velocity):\n    speed = puck_velocity.abs()\n    return speed,"
            " {'speed': speed}\n"
        ),
        "reduction": "max",
    }
)
NOT_FINITE = (
    "def compute_reward(puck_velocity):\n    value = (puck_velocity - 1e6).log()\n    return value,"
    " {'value': value}\n"
)
RAISES = (
    "def compute_reward(puck_velocity):\n    value = puck_velocity[puck_velocity > 9.0]\n    return"
    " value, {'value': value}\n"
)
CONSTANT = (
    "def compute_reward(puck_position):\n    value = 0.0 * puck_position\n    return value,"
    " {'value': value}\n"
)
SETTINGS = TrainingSettings(
    env_steps=2048, num_envs=8, horizon=32, hidden_sizes=(16,), epochs=1, checkpoints=2
)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return save_random_policy(tmp_path / "policy.safetensors", 2, 1, 4)


async def evaluated(
    puck: Path, fitness: WrittenFitness | None, policy: Path, folder: Path
) -> tuple[list[float], dict[str, dict[str, np.ndarray]]]:
    """Fitness of two episodes, sorted, and their trajectories: the worst and the best are all that
    there are."""
    evaluator = Evaluator(
        ProcessWall(), Problem(str(puck), "centre", fitness), folder / "evaluator"
    )
    try:
        evaluation = await evaluator.evaluate(policy, 3, 2, folder / "episodes.npz")
    finally:
        await evaluator.close()
    return sorted(episode.fitness for episode in evaluation.episodes), load_trajectories(
        folder / "episodes.npz"
    )


async def test_scores_are_what_the_trajectories_come_to_by_hand(
    puck: Path, policy: Path, tmp_path: Path
) -> None:
    found, episodes = await evaluated(puck, PROGRESS, policy, tmp_path / "sum")
    by_hand = []
    for name in ("worst", "best"):
        episode = episodes[name]
        start, end = episode["observations"][0, 0], episode["puck_position"][-1]
        # the steps' progress adds up to that of the episode, from the state before the first one on
        by_hand.append(abs(start) - abs(end) - 0.125 * np.square(episode["actions"]).sum())
    assert by_hand[0] < by_hand[1]
    assert found == pytest.approx(by_hand, abs=1e-5)
    found, episodes = await evaluated(puck, FASTEST, policy, tmp_path / "max")
    assert found == pytest.approx(
        [np.abs(episodes[name]["puck_velocity"]).max() for name in ("worst", "best")]
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dry_runner(
    puck: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[DryRunner]:
    dry_runner = DryRunner(
        ProcessWall(),
        Problem(str(puck), "centre", PROGRESS),
        tmp_path_factory.mktemp("dry"),
    )
    await dry_runner.start()
    yield dry_runner
    await dry_runner.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_worker_tells_of_the_task(dry_runner: DryRunner) -> None:
    description = dry_runner.description
    assert description.sentence == "bring the puck nearer to the middle"
    assert (description.fitness_doc, description.fitness_author) == (PROGRESS.doc, "openai/tiny")
    assert (description.human_reward, description.sparse_reward) == (
        None,
        baseline(PROGRESS.source),
    )
    assert description.fingerprint.startswith(f"{description.environment_fingerprint}+")


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("source", "code"),
    [
        (NOT_FINITE, "D305"),
        (CONSTANT, "D313"),
        ("def compute_reward(puck):\n    return puck, {'puck': puck}\n", "C303"),
    ],
)
async def test_the_critic_rejects_what_is_no_fitness(
    dry_runner: DryRunner, source: str, code: str
) -> None:
    verdict = await Critic(dry_runner.description, dry_runner).judge(given_reward(source))
    assert not verdict.accepted
    assert code in [finding.code for finding in verdict.findings if finding.severity == "error"]
    assert (
        await Critic(dry_runner.description, dry_runner).judge(given_reward(PROGRESS.source))
    ).accepted


@pytest.mark.parametrize(
    ("source", "part"),
    [
        (NOT_FINITE, "fitness is NaN or infinite in 1 of 1"),
        (RAISES, "the written fitness fails: line 3: the total has shape"),
    ],
)
async def test_a_fitness_that_breaks_in_an_evaluation_is_told_and_the_worker_lives_on(
    puck: Path, policy: Path, tmp_path: Path, source: str, part: str
) -> None:
    broken = PROGRESS.model_copy(update={"source": source})
    evaluator = Evaluator(
        ProcessWall(), Problem(str(puck), "centre", broken), tmp_path / "evaluator"
    )
    try:
        workers = set()
        for seed in (1, 2):
            with pytest.raises(WorkerFaultError) as caught:
                await evaluator.evaluate(policy, seed, 1)
            assert part in caught.value.message
            workers |= {path.name for path in (tmp_path / "evaluator").iterdir()}
        assert len(workers) == 1
    finally:
        await evaluator.close()


async def test_a_fitness_that_does_not_fit_the_environment_is_told_when_it_is_opened(
    puck: Path, tmp_path: Path
) -> None:
    foreign = PROGRESS.model_copy(
        update={"source": "def compute_reward(pole_angle):\n    return pole_angle, {}\n"}
    )
    dry_runner = DryRunner(ProcessWall(), Problem(str(puck), None, foreign), tmp_path / "dry")
    with pytest.raises(EurekaError) as caught:
        await dry_runner.start()
    assert caught.value.message.startswith("the written fitness cannot be loaded: ")
    assert "'pole_angle', which is no variable" in caught.value.message
    await dry_runner.close()
    shutil.rmtree(tmp_path / "dry")

"""Each designer of a generation is told something of its own, and the same again in a resumed
run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine
from model_rewards import answer
from model_server import Asked, ModelServer, Reply
from outcomes import make_outcome
from planned_attempts import planned
from rung_trials import RUNGS, RungTrials
from scripted_search import Fuse, Killed, ScriptedDesigner, ScriptedSearch, reward, rows
from stored_attempts import store_attempt

from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import opening
from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.feedback_records import Wish
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.journal.entries import (
    FeedbackGiven,
    FinalTrained,
    Notice,
    Planned,
    ToolAnswered,
)
from eureka_agent.llm.prompts import system_message, task_text
from eureka_agent.records import FinalTraining, Operator, ToolCall
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.preparation import measure_task
from eureka_agent.search.strategies import Greedy, Strategy, strategy_of
from eureka_agent.settings import SearchSettings

MakeRun = Callable[..., Run]

SETTINGS = {**RUNGS, "iterations": 3, "samples": 6, "scoring_episodes": 5}
WEIGHTS = range(1, 19)
SCRIPT = [reward(weight) for weight in WEIGHTS]
FITNESS = {reward(weight): 1.0 if weight in (2, 8) else 8.0 + weight / 20 for weight in WEIGHTS}


def search_with(run: Run, fuse: Fuse) -> ScriptedSearch:
    known = sum(attempt.revision == 0 for attempt in run.archive.attempts())
    designer = ScriptedDesigner(SCRIPT[known:], concurrent=True)
    return ScriptedSearch(run, designer, RungTrials(FITNESS, fuse))


def prompts(search: ScriptedSearch) -> dict[str, str]:
    """Prompts for each attempt."""
    return {request.attempt: opening(request)[1].content for request in search.designer.requests}


async def test_no_two_proposals_are_asked_for_in_the_same_words(make_run: MakeRun) -> None:
    search = search_with(make_run(**SETTINGS), Fuse())
    await search.engine.generations()
    assert len(set(prompts(search).values())) == 18
    fresh = [request for request in search.designer.requests if request.operator is Operator.FRESH]
    assert len(fresh) == 6


async def requests(
    run: Run, strategy: Strategy, iteration: int, samples: range
) -> list[DesignRequest]:
    """Requests to designers for these places of a generation."""
    briefing = Briefing(run, strategy, run.archive.append)
    return [await briefing.request(plan) for plan in briefing.plan(iteration, samples)]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_answers_to_others_come_in_one_order_whenever_they_were_given(
    make_run: MakeRun, order: tuple[int, ...]
) -> None:
    run = make_run(**SETTINGS)
    given = [
        ToolAnswered(
            attempt=attempt,
            key=f"{place}",
            call=ToolCall(id="", name="ask", arguments=f'{{"attempt": "{about}"}}'),
            text=f"answer {place}",
        )
        for place, (attempt, about) in enumerate(
            [("2-01", "1-03"), ("2-02", "1-03"), ("2-02", "1-04"), ("2-03", "1-03")]
        )
    ]
    for place in order:
        run.archive.append(given[place])
    plan = Planned(iteration=1, sample=4, operator=Operator.IMPROVE, parents=("1-03",), seen=0)
    briefing = Briefing(run, Greedy(), lambda entry: None)
    # those of earlier waves about its own parent, attempt by attempt
    assert briefing.asked(plan, ["2-01", "2-02"]) == ("answer 0", "answer 1")


async def test_what_a_person_says_is_about_the_best_so_far(make_run: MakeRun) -> None:
    run = make_run(**SETTINGS, drafts=2)
    for sample in range(6):
        store_attempt(run.archive, planned(0, sample, float(sample)))
    strategies = [strategy_of(run.settings, refined=refined) for refined in (False, True)]
    briefing = Briefing(run, strategies[0], lambda entry: None, refining=strategies[1])
    fresh = briefing.plan(1, range(6))
    assert {plan.parents for plan in fresh} == {()}, "drafts of the offline designer are compared"
    run.archive.append(FeedbackGiven(who="ada", feedback=Wish(wants="be gentle")))
    assert briefing.plan(1, range(6))[0].parents == ("0-5",)


@pytest.mark.parametrize("place", [5, 14])
async def test_a_resumed_run_asks_in_the_same_bytes(make_run: MakeRun, place: int) -> None:
    whole = search_with(make_run(**SETTINGS), Fuse())
    await whole.engine.generations()
    run = make_run(**SETTINGS)
    killed = search_with(run, Fuse("trained", place))
    with pytest.raises((Killed, BaseExceptionGroup)):
        await killed.engine.generations()
    asked = prompts(killed)
    resumed = search_with(open_run(run.folder), Fuse())
    await resumed.engine.generations()
    asked |= prompts(resumed)
    assert asked == prompts(whole)
    assert rows(resumed.run) == rows(whole.run)


async def test_a_parent_comes_with_what_was_changed(make_run: MakeRun) -> None:
    search = search_with(make_run(**SETTINGS), Fuse())
    await search.engine.generations()
    parents = {
        parent.id: parent for request in search.designer.requests[12:] for parent in request.parents
    }
    # 2-06 with weight 12 and a fitness of 8.6 is the best of two generations, and was made from
    # 1-05 with 5 and 8.25
    assert (
        parents["2-06"].changes[0]
        == "2-06 itself, made from 1-05: other form of closeness: fitness 8.25 → 8.6 (one training"
        " against one training)"
    )
    assert parents["2-06"].episodes == search.run.settings.evaluation_episodes


# ── the run's own training ────────────────────────────────────────────────────────────────────────


def test_the_settings_in_force_are_told_and_not_the_tasks_own(make_run: MakeRun) -> None:
    run = make_run(env_steps=30_000, num_envs=8, discount=0.995)
    told = task_text(run.description, run.sentence, run.settings)
    assert "for 30,000 environment steps, 8 environments at a time" in told
    assert "10,000" not in told, "the task's own"
    # 1 / (1 - 0.995) = 200 steps of 0.02 s
    assert "The discount is 0.995 a step: the policy looks about 200 steps (4 s) ahead." in told
    own = task_text(run.description, run.sentence)
    assert "for 10,000 environment steps, 16 environments at a time" in own
    assert "about 100 steps (2 s) ahead" in own
    assert "Rewards are not discounted." in task_text(
        run.description, run.sentence, SearchSettings(discount=1.0)
    )


def test_nothing_that_may_change_before_a_run_is_resumed_is_told(make_run: MakeRun) -> None:
    run = make_run()
    free = {"final_seeds": 7, "iterations": 9, "slots": 3, "baselines": False, "workers": 2}
    changed = run.settings.model_copy(update=free)
    assert task_text(run.description, run.sentence, run.settings) == task_text(
        run.description, run.sentence, changed
    )


# ── the baselines' scores ─────────────────────────────────────────────────────────────────────────


async def told_in(run: Run, iteration: int, *models: str) -> str:
    """The designer's order of the first proposal of a generation."""
    briefing = Briefing(run, Greedy(), run.archive.append, models or ("openai/any",))
    (plan,) = briefing.plan(iteration, range(1))
    return opening(await briefing.request(plan))[1].content


def put_baselines(run: Run, **fitness: list[float | None]) -> None:
    for name, values in fitness.items():
        for seed, value in enumerate(values):
            outcome = None if value is None else make_outcome(value)
            run.archive.append(
                FinalTrained(training=FinalTraining(name=name, seed=seed, outcome=outcome))
            )


async def test_the_baselines_scores_are_told_from_the_second_generation_on(
    make_run: MakeRun,
) -> None:
    run = make_run()
    put_baselines(run, sparse=[1.0, 2.0, 3.0], human=[8.0, None, 9.0])
    assert "Other rewards" not in await told_in(run, 0), (
        "in the first one it depends on earlier runs which are known"
    )
    told = await told_in(run, 1)
    assert "- the fitness itself as the reward: 2 over 3 seeds\n" in told
    assert "- an expert's reward, which you are not shown: 8.5 over 2 seeds\n" in told
    # pooled: 1 + 0 + 1 over 2 and 0.25 + 0.25 over 1 are 2.5 over 3, whose root is 0.913
    assert "different seeds differ by 0.91 in fitness (standard deviation).\n" in told
    assert "closeness" not in told, "a baseline's source is not told"


async def test_blind_leaves_out_what_the_human_reward_scores(make_run: MakeRun) -> None:
    run = make_run(blind=True)
    put_baselines(run, sparse=[1.0], human=[8.0])
    told = await told_in(run, 1)
    assert "the fitness itself as the reward: 1 over 1 seed\n" in told
    assert "expert" not in told
    assert "different seeds" not in told, "one seed says nothing of the difference between seeds"


async def test_scores_stay_as_they_were_told_first(make_run: MakeRun) -> None:
    run = make_run()
    put_baselines(run, sparse=[1.0, 2.0])
    first = await told_in(run, 1)
    put_baselines(run, sparse=[1.0, 2.0, 30.0], human=[8.0])
    assert await told_in(open_run(run.folder), 1) == first
    later = await told_in(open_run(run.folder), 3)  # planned later, from what is known by then
    assert "over 3 seeds" in later


# ── what is measured ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_run_keeps_what_it_measured_and_makes_the_same_prompt_of_it(
    eureka: CommandLine, puck: Path
) -> None:
    with ModelServer(
        lambda asked: Reply(text=answer(asked.system + asked.prompt, len(asked.body)))
    ) as server:
        text = f"--env {puck} --iterations 1 --samples 1 --finalists 0 --confirm 0 --env-steps 4096"
        text += f" --model openai/test --base-url {server.base_url} --reviewer off"
        eureka("search", "bring the puck to the middle", *text.split())
        asked: Asked = server.requests[0]
    assert "for 4,096 environment steps" in asked.system
    assert (
        "puck_position: Tensor  # (batch,), m, world frame, range -2 to 2, start -1.5 to 1.5."
        in asked.system
    )
    assert "puck_velocity: Tensor  # (batch,), m/s, world frame, start 0." in asked.system
    run = open_run(eureka.run_folder())
    measured = run.description.measured
    assert measured is not None
    zero = measured.zero_actions
    assert zero is not None
    # a puck that is left alone lies still: 5 s where it starts within 0.1 m of the middle, one in
    # 15, else nothing
    assert zero.length == 50.0
    near = zero.mean / 5.0 * zero.episodes
    assert near == pytest.approx(round(near), abs=1e-3)
    assert 0 <= near <= 16
    assert "Fitness without any training: " in asked.system
    again = system_message(
        "system.md",
        run.description,
        run.sentence,
        run.settings,
        rewards="code",
        design="reward",
        calls=0,
        turns=0,
    )
    assert again.content == asked.system


# with more rows alone: what the few of the rehearsal show would end the run before anything is
# measured
FAILS_ON_ZERO = """
    def pre_physics_step(self, actions):
        if len(actions) > 8 and (actions == 0.0).all(dim=-1).any():
            {failing}
"""


def restless(puck: Path, folder: Path, failing: str) -> DryRunner:
    """A dry runner for a puck that fails where every action is 0."""
    shutil.copytree(puck, folder, ignore=shutil.ignore_patterns("__pycache__"))
    source = (folder / "env.py").read_text()
    hook = "\n    def pre_physics_step(self, actions):\n"
    (folder / "env.py").write_text(source.replace(hook, FAILS_ON_ZERO.format(failing=failing)))
    return DryRunner(ProcessWall(), Problem(str(folder)), folder.parent / "scratch")


async def test_an_environment_that_fails_as_it_is_measured_ends_the_run(
    puck: Path, tmp_path: Path
) -> None:
    """No model is asked about an environment that cannot be trained on."""
    dry_runner = restless(
        puck, tmp_path / "restless", 'raise ValueError("this motor knows no rest")'
    )
    try:
        await dry_runner.start()
        with pytest.raises(EnvironmentFaultError, match="this motor knows no rest"):
            await measure_task(dry_runner, lambda event: None)
    finally:
        await dry_runner.close()


async def test_what_cannot_be_measured_is_left_out_and_said(puck: Path, tmp_path: Path) -> None:
    dry_runner = restless(puck, tmp_path / "restless", "__import__('os')._exit(3)")
    notices: list[str] = []
    try:
        description = await dry_runner.start()
        assert description.measured is None
        await measure_task(
            dry_runner,
            lambda event: notices.append(event.text if isinstance(event, Notice) else ""),
        )
        measured = dry_runner.description.measured
    finally:
        await dry_runner.close()
    assert len(notices) == 1
    assert notices[0].startswith("models are not told what doing nothing scores: ")
    assert measured is not None
    assert measured.zero_actions is None
    assert set(measured.starts) == {"puck_position", "puck_velocity"}
    told = task_text(dry_runner.description, "any")
    assert "start -1.5 to 1.5" in told
    assert "Fitness without any training" not in told

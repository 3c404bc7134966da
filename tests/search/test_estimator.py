"""Estimates of searches on the puck, with real workers for the calibration and none after it."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from model_rewards import answer
from model_server import Asked, ModelServer
from script_wall import ScriptWall

from eureka_agent.errors import EurekaError
from eureka_agent.records import ParameterSpec, TaskDescription
from eureka_agent.report.plan import RoleEstimate, SearchPlan, render_plan
from eureka_agent.report.terminal import CleanConsole
from eureka_agent.search import estimator as estimators
from eureka_agent.search.budget import parse_budget
from eureka_agent.search.estimator import (
    LATER_TOKENS,
    ROLE_TOKENS,
    Estimator,
    count_requests,
)
from eureka_agent.search.models import models_of
from eureka_agent.settings import SearchSettings

SIZES: dict[str, Any] = {"iterations": 2, "samples": 3, "finalists": 2, "final_seeds": 2}
SIZES |= {"confirm": 1, "strategy": "greedy"}
# 2 x 3 in the generations and 1 between them, 2 finals of the winner and 1 of the other finalist,
# 2 x 2 baselines
TRAININGS = 14
FLAGS = tuple(
    word for name, value in SIZES.items() for word in (f"--{name.replace('_', '-')}", str(value))
)


@pytest.fixture(scope="module")
def planned(puck: Path, shared_eureka: CommandLine) -> dict[str, Any]:
    """The first plan of the puck, as JSON, which leaves a calibration."""
    document: dict[str, Any] = shared_eureka.json("search", "--env", str(puck), *FLAGS, "--plan")
    return document


@pytest.fixture
def calibrated(
    planned: dict[str, Any],
    shared_eureka: CommandLine,
    puck: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Any]:
    """Settings of a search whose calibration is known."""
    monkeypatch.setenv("EUREKA_RUNS", str(shared_eureka.folder / "runs"))
    return {"env": str(puck), **SIZES}


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> ScriptWall:
    """The wall of the estimates, which counts the workers and ends each at once."""
    found = ScriptWall("")
    monkeypatch.setattr(estimators, "choose_wall", lambda name: found)
    return found


async def planned_with(values: dict[str, Any]) -> SearchPlan:
    async with Estimator() as estimator:
        return await estimator.plan(values)


@pytest.mark.slow
def test_a_plan_starts_no_search(planned: dict[str, Any], shared_eureka: CommandLine) -> None:
    assert planned["trainings"] == TRAININGS
    assert planned["env_steps"] == TRAININGS * 8192
    assert planned["per_generation"] == {"candidates": 3, "confirmations": 1}
    assert (planned["finals"], planned["baselines"]) == (3, 4)
    assert planned["seconds"] > 0
    assert not any("cluster" in note for note in planned["notes"])
    assert (planned["requests"], planned["money"]) == (0, "0")
    assert [path.name for path in (shared_eureka.folder / "runs").iterdir()] == [".cache"]


@pytest.mark.slow
async def test_a_hundred_further_estimates_take_no_worker(
    calibrated: dict[str, Any], wall: ScriptWall
) -> None:
    found = list[SearchPlan]()
    async with Estimator() as estimator:
        for seed in range(100):
            values = {**calibrated, "seed": seed, "env_steps": 8192 * (1 + seed % 5)}
            found.append(await estimator.plan(values))
    assert wall.started == 0
    # 2 x 2 baselines of each length are those of the first that has them
    assert [plan.counts.baselines for plan in found] == [4] * 5 + [0] * 95
    assert found[5].estimate.trainings == found[0].estimate.trainings - 4
    # five times the steps
    assert found[4].estimate.env_steps == 5 * found[0].estimate.env_steps
    assert (found[4].estimate.seconds or 0) > (found[0].estimate.seconds or 0)


@pytest.mark.slow
async def test_another_file_in_the_environment_is_another_task(
    calibrated: dict[str, Any], wall: ScriptWall, tmp_path: Path
) -> None:
    changed = tmp_path / "puck"
    shutil.copytree(calibrated["env"], changed)
    (changed / "env.py").write_text((changed / "env.py").read_text() + "# heavier\n")
    with pytest.raises(EurekaError):  # its worker ends at once
        await planned_with({**calibrated, "env": str(changed)})
    assert wall.started > 0


@pytest.mark.slow
async def test_limits_cut_the_generations(calibrated: dict[str, Any], wall: ScriptWall) -> None:
    whole = await planned_with({**calibrated, "iterations": 200, "video": False})
    half = (whole.estimate.seconds or 0) / 2
    cut = await planned_with(
        {**calibrated, "iterations": 200, "video": False, "max_time": f"{half:.0f}s"}
    )
    assert 60 < cut.settings.iterations < 110
    assert (cut.estimate.seconds or 0) <= half + 1
    assert any("of 200 generations fit into" in note for note in cut.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"budget": "10m"}, "10m"),
        ({"budget": "10m", "max_time": "5m"}, "5m"),
    ],
)
async def test_a_plan_says_one_time_and_it_is_within_the_limit(
    calibrated: dict[str, Any], limits: dict[str, str], most: str
) -> None:
    found = await planned_with({"env": calibrated["env"], **limits})
    seconds, bound = found.estimate.seconds or 0.0, parse_budget(most).seconds or 0.0
    assert 0.7 * bound < seconds <= bound
    console = CleanConsole(file=io.StringIO(), width=500)
    console.print(render_plan(found))
    assert isinstance(console.file, io.StringIO)
    times = re.findall(r"about ([\d.]+ (?:s|min|h)(?: \d+ (?:s|min))?)\b", console.file.getvalue())
    assert (len(times), len(set(times))) == (2, 1)  # of the budget, and of the plan
    assert f"the budget of {most}" in found.notes[0]
    assert f" {found.settings.iterations:,} generation" in found.notes[0]
    assert not any("fit into" in note for note in found.notes)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "environment": ({"env": "hoper"}, "there is no environment 'hoper'"),
    "key": ({"model": ("openai/gpt-5",)}, "needs a key and OPENAI_API_KEY is not set"),
    "setting": ({"smaples": 3}, "unknown setting 'smaples'"),
    "budget": ({"budget": "ten"}, "the budget is 'ten'"),
    "written": ({"fitness": "written"}, "needs a language model"),
    "task": ({"task": "left"}, "ended with exit status 0"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
async def test_the_errors_of_a_search_come_out(
    name: str, calibrated: dict[str, Any], wall: ScriptWall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    values, message = FAULTS[name]
    with pytest.raises(EurekaError, match=message):
        await planned_with({**calibrated, **values})
    if name != "task":  # which a worker looks for
        assert wall.started == 0


@pytest.mark.slow
async def test_a_limit_on_money_needs_a_price(
    calibrated: dict[str, Any], wall: ScriptWall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    unpriced = {**calibrated, "model": ("openai/mine",)}
    with pytest.raises(EurekaError, match="the price of openai/mine is not known"):
        await planned_with({**unpriced, "max_cost": "5"})
    found = await planned_with(unpriced)
    assert found.estimate.money is None
    assert any("--price" in note for note in found.notes)


@pytest.mark.slow
def test_the_first_prompts_have_the_estimated_size(
    planned: dict[str, Any], shared_eureka: CommandLine, puck: Path
) -> None:
    def reply(asked: Asked) -> str:
        prompt = "\n".join(f"# {role}\n{text}" for role, text in asked.turns)
        return answer(prompt, len(server.requests))

    with ModelServer(reply) as server:
        shared_eureka.environment["OPENAI_API_KEY"] = "sk-test"
        search = (
            *("search", "--env", str(puck), "--iterations", "1", "--samples", "2"),
            *("--model", "openai/test", "--base-url", server.base_url, "--confirm", "0"),
            *("--finalists", "0", "--env-steps", "512", "--max-tokens", "100000"),
        )
        plan = shared_eureka.json(*search, "--plan")
        assert server.requests == []
        shared_eureka(*search)
    (designer,) = (each for each in plan["roles"] if each["role"] == "designer")
    designs = [each for each in server.requests if "contradict" not in each.prompt]
    assert designer["requests"] == 2
    sizes = [(len(each.system) + len(each.prompt)) / 4 for each in designs]
    # the second proposal is told an angle of its own
    assert designer["prompt_tokens"] / 2 == pytest.approx(min(sizes), abs=1)
    assert designer["prompt_tokens"] == pytest.approx(sum(sizes[:2]), rel=0.1)


PRICES = ("openai/one=1,10", "openai/two=2,20")


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


async def counted(description: TaskDescription, **values: object) -> Sequence[RoleEstimate]:
    given = {"model": ("openai/one",), "reviewer": "off", "analyst": "off", "price": PRICES[:1]}
    given["designer_tools"] = "off"
    settings = SearchSettings.model_validate({"samples": 8, "iterations": 3, **given, **values})
    models = models_of(settings, lambda reason: None)
    assert models is not None
    try:
        return count_requests(models, settings, description)
    finally:
        await models.close()


async def test_later_prompts_hold_what_was_learned(description: TaskDescription) -> None:
    (first,) = await counted(description, iterations=1)
    (all_,) = await counted(description)
    (fresh,) = await counted(description, strategy="best-of-n")
    assert (first.requests, all_.requests, fresh.requests) == (8, 24, 24)
    prompt = first.prompt_tokens // 8
    # sixteen of the 24 prompts are longer
    assert all_.prompt_tokens // 24 == prompt + LATER_TOKENS * 16 // 24
    assert fresh.prompt_tokens == 24 * prompt
    assert all_.reply_tokens == 24 * ROLE_TOKENS["designer"][0]


async def test_money_is_tokens_at_their_price(description: TaskDescription) -> None:
    (found,) = await counted(description, iterations=1, reply_tokens=100)
    assert found.reply_tokens == 800  # the bound is below the usual length
    assert found.money == Decimal(found.prompt_tokens + 10 * 800) / 1_000_000
    (unpriced,) = await counted(description, model=("openai/mine",), price=())
    assert unpriced.money is None


async def test_every_role_counts(description: TaskDescription) -> None:
    found = await counted(description, reviewer="openai/one", analyst="auto")
    requests = {each.role: each.requests for each in found}
    # a named reviewer reads every reward, the analyst the best attempt before a later generation
    assert requests == {"designer": 24, "reviewer": 24, "analyst": 2}
    # a designer looks once there is something to look at, then answers, and needs no analyst
    looking = await counted(description, analyst="auto", designer_tools="auto")
    assert {each.role: each.requests for each in looking} == {"designer": 8 + 2 * 16}
    reviewer = next(each for each in found if each.role == "reviewer")
    designer = next(each for each in found if each.role == "designer")
    # a reward of 1,500 characters beside what a first design request has
    assert (
        reviewer.prompt_tokens // 24
        == (designer.prompt_tokens // 24 - LATER_TOKENS * 16 // 24) + 375
    )
    doubted = await counted(description, reviewer="auto")
    assert {each.role: each.requests for each in doubted} == {"designer": 24, "reviewer": 3}
    judged = await counted(description, fitness="judged", iterations=1)
    # two comparisons for each of eight attempts, the question if the model sees, its sub-goals
    assert {each.role: each.requests for each in judged} == {"designer": 8, "judge": 18}
    written = await counted(description, fitness="written", sentence="wave", iterations=1)
    assert {each.role: each.requests for each in written} == {"metric": 1, "designer": 8}
    mass = ParameterSpec(name="mass", default=1.0, low=0.5, high=2.0)
    with_mass = description.model_copy(update={"parameters": (mass,)})
    randomised = await counted(with_mass, randomise=4, iterations=1)
    assert {each.role: each.requests for each in randomised} == {"designer": 8, "randomiser": 1}

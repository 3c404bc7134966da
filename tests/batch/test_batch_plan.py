"""Estimates of batches: the sums, shared baselines, and every search that could not start."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from command_line import CommandLine

pytestmark = pytest.mark.slow

FILE = """\
at_once: 2
sandbox: process
defaults: {env: cartpole, env_steps: 8192, iterations: 2, samples: 3, finalists: 2, final_seeds: 2, confirm: 1}
matrix:
  strategy: [greedy, best-of-n]
  seed: [0, 1]
"""
# 2 x 3 in the generations, 1 to confirm between them for greedy; 2 finals of the winner and 1 of the
# other finalist; 2 x 2 baselines, which the searches share
GREEDY, BEST_OF_N, SHARED = 10, 9, 4
ALL = 2 * GREEDY + 2 * BEST_OF_N + SHARED


@pytest.fixture(scope="module")
def eureka(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    return CommandLine(tmp_path_factory.mktemp("estimates"))


def write(eureka: CommandLine, *changes: tuple[str, str]) -> str:
    text = FILE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (eureka.folder / "estimated.yaml").write_text(text, encoding="utf-8")
    return str(eureka.folder / "estimated.yaml")


def test_searches_share_baselines_and_the_machine(eureka: CommandLine) -> None:
    file = write(eureka)
    plan = eureka.json("batch", file, "--plan")
    assert [each["name"] for each in plan["searches"]] == [
        f"{strategy}-seed{seed}" for strategy in ("greedy", "best-of-n") for seed in (0, 1)
    ]
    assert [each["trainings"] for each in plan["searches"]] == [
        *(GREEDY + SHARED, GREEDY),
        *(BEST_OF_N, BEST_OF_N),
    ]
    assert plan["total"]["trainings"] == ALL
    assert plan["total"]["env_steps"] == ALL * 8192
    assert plan["total"]["money"] == "0"
    # none waits for a model, so they add up
    assert plan["total"]["seconds"] == pytest.approx(
        sum(each["seconds"] for each in plan["searches"])
    )
    assert not (eureka.folder / "runs" / "estimated").exists()


def test_every_search_that_could_not_start_is_told_before_anything_is(eureka: CommandLine) -> None:
    broken = eureka.folder / "broken"
    broken.mkdir(exist_ok=True)
    (broken / "env.py").write_text("raise RuntimeError('no simulator')\n", encoding="utf-8")
    file = write(
        eureka,
        (
            "  strategy: [greedy, best-of-n]",
            f"  env: [cartpole, {json.dumps(str(broken))}]\n"
            "  model: [offline, openai/a, anthropic/b]",
        ),
    )
    told = eureka("batch", file, status=2)
    assert "has 3 mistakes" in told
    assert "line 5, matrix.env[1]" in told
    assert "no simulator" in told
    assert "line 6, matrix.model[1]" in told
    assert "OPENAI_API_KEY is not set" in told
    assert "line 6, matrix.model[2]" in told
    assert "ANTHROPIC_API_KEY is not set" in told
    assert "and 1 more" in told  # each model is in 2 environments x 2 seeds
    assert not (eureka.folder / "runs" / "estimated").exists()


def test_a_costly_batch_asks_and_starts_nothing_without_an_answer(eureka: CommandLine) -> None:
    model = (
        "  strategy: [greedy, best-of-n]",
        '  model: [openai/a]\n  base_url: ["http://127.0.0.1:9/v1"]\n  price: ["openai/a=1000,1000"]',
    )
    file = write(eureka, model)
    plan = eureka.json("batch", file, "--plan")
    cost = float(plan["total"]["money"])
    tokens = plan["total"]["prompt_tokens"] + plan["total"]["reply_tokens"]
    assert cost == pytest.approx(tokens / 1000)  # 1000 dollars for a million
    assert plan["total"]["requests"] >= 2 * 2 * 3
    refused = eureka("batch", file, "--detach", status=2)
    assert f"${cost:,.2f}" in refused
    assert "--yes" in refused
    assert not (eureka.folder / "runs" / "estimated").exists()
    # at a terminal it asks, and no is the default
    controller, terminal = os.openpty()
    with os.fdopen(terminal, "r+b", buffering=0) as there, os.fdopen(controller, "wb") as here:
        here.write(b"n\n")
        here.flush()
        process = subprocess.run(
            [sys.executable, "-m", "eureka_agent.cli.main", "batch", file],
            env=eureka.environment,
            cwd=eureka.folder,
            stdin=there,
            stdout=there,
            stderr=there,
            timeout=60,
        )
    assert process.returncode == 1
    assert not (eureka.folder / "runs" / "estimated").exists()
    # what the batch may spend is a bound
    bounded = write(eureka, model, ("at_once: 2", "max_cost: 5"))
    notes = eureka.json("batch", bounded, "--plan")["notes"]
    assert any("max_cost ends the designing at $5" in note for note in notes)

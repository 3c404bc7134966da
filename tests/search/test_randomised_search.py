"""Whole searches over distributions of parameters, offline and with a model, by the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine
from model_server import Asked, ModelServer, Reply
from safetensors.numpy import load_file

pytestmark = pytest.mark.slow
SMALL = (
    *("search", "balance the pole", "--env", "cartpole", "--iterations", "1", "--samples", "1"),
    *("--finalists", "1", "--final-seeds", "1", "--no-baselines", "--env-steps", "4096"),
    *("--scoring-episodes", "1", "--evaluation-episodes", "2", "--no-video"),
)
REWARD = """def compute_reward(pole_upright):
    return pole_upright, {'upright': pole_upright}
"""
DISTRIBUTIONS = """Mass matters.

```json
{"distributions": [
  {"reason": "a load", "parameters": {"pole_mass": [0.8, 9]}, "curriculum": [{"from": 0.5}]}
]}
```"""


def test_a_search_by_a_model_and_without(eureka: CommandLine) -> None:
    """The model writes one distribution of two, so the other one is the offline designer's."""
    eureka.environment["OPENAI_API_KEY"] = "sk-test"

    def answer(asked: Asked) -> Reply:
        is_order = "Propose 2 distributions" in asked.turns[0][1]
        text = DISTRIBUTIONS if is_order else f"```python\n{REWARD}```"
        return Reply(text=text, prompt_tokens=900, completion_tokens=90)

    with ModelServer(answer) as server:
        model = ("--model", "openai/test", "--base-url", server.base_url, "--reviewer", "off")
        run = eureka.json(*SMALL, "--randomise", "2", *model)
    found = run["randomisation"]
    first, second = found["distributions"]
    assert (first["author"], second["author"]) == ("openai/test", "offline")
    assert first["notes"] == ["pole_mass=0.8..9 was clipped to the safe range 0.3..5"]
    assert first["curriculum"] == [
        {"begins": 0.0, "parameters": {}},
        {"begins": 0.5, "parameters": {"pole_mass": [0.8, 5.0]}},
    ]
    ledger = eureka.json("show", run["folder"], "--cost")
    requests = {each["role"]: each["requests"] for each in ledger["by_role"]}
    assert requests == {"designer": 1, "randomiser": 1}
    assert {each["name"] for each in found["prior"]["parameters"]} == {
        *("cart_mass", "pole_mass", "motor_strength", "wheel_friction", "action_delay")
    }
    assert (run["cost"]["trainings"], run["cost"]["randomised_trainings"]) == (4, 2)
    assert [score["name"] for score in run["finalists"]] == [run["best"]["id"]]
    folder = Path(run["folder"])
    assert (
        json.loads((folder / "randomised" / "distribution.json").read_text())["name"]
        == found["best"]
    )
    assert "## Under other parameters" in (folder / "report.md").read_text()
    exported = Path(eureka.json("export", "latest", "randomised")["folder"])
    assert exported == folder / "export" / "randomised"
    readme = (exported / "README.md").read_text()
    best = first if found["best"] == "d1" else second
    low, high = best["curriculum"][-1]["parameters"]["pole_mass"]
    assert f"pole_mass={low:g}..{high:g}" in readme
    means = [
        each["mean"]
        for each in json.loads((exported / "policy.json").read_text())["observation"]["columns"]
    ]
    of_policy = load_file(folder / "randomised" / "policy.safetensors")["observation_mean"]
    assert means == pytest.approx(of_policy.tolist(), rel=1e-5)
    assert means != pytest.approx(
        load_file(folder / "best" / "policy.safetensors")["observation_mean"].tolist(), rel=1e-5
    )
    short = ("--episode", "0", "--seconds", "0.2", "--size", "128x96")
    filmed = eureka.json("video", "latest", "randomised", *short)
    name = f"{run['best']['id']}+{found['best']}"
    assert [each["policy"] for each in filmed["episodes"]] == [f"attempt {name}"]
    shown = eureka.json("show", "latest", name)
    assert (shown["operator"], shown["parents"]) == ("randomise", [run["best"]["id"]])
    scored = eureka.json(
        *("evaluate", run["folder"], "randomised", "--parameters", "pole_mass=2"),
        *("--episodes", "2"),
    )
    assert scored["parameters"] == {"pole_mass": [2.0, 2.0]}
    assert scored["policy"].endswith("randomised/policy.safetensors")

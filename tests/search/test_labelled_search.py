"""Searches whose states a model labels, over real HTTP: late, in prose, in contradictions and floods;
killed and resumed; exported; and refused where there is nothing to label or nobody to do it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, wait_for
from model_server import Asked, ModelServer

from eureka_agent.search.labelling import AT_ONCE

pytestmark = pytest.mark.slow
DESIGN = """It is nearer to what comes next.

```python
NEAR = 0.1


def compute_reward(goal_distance, has_key):
    near, key = -NEAR * goal_distance, 0.1 * has_key
    return near + key, {"near": near, "key": key}
```
"""
QUICK = (
    "--iterations 1 --samples 2 --finalists 0 --confirm 0 --no-baselines --reviewer off"
    " --designer-tools off --novelty off --rungs 0.9 --seed 1 --checkpoints 5"
)


def captions_in(asked: Asked) -> list[str]:
    return re.findall(r"^\d+\. (.*)$", asked.prompt, re.MULTILINE)


def is_label(asked: Asked) -> bool:
    return asked.prompt.lstrip().startswith(("# Captions", "# Pairs"))


class Model:
    """Designs always the same, and labels as it is told: it gets a request's captions."""

    def __init__(self, labels: Callable[[int, list[str]], str]) -> None:
        self._labels = labels
        self.asked = 0

    def __call__(self, asked: Asked) -> str:
        if not is_label(asked):
            return DESIGN
        self.asked += 1
        return self._labels(self.asked, captions_in(asked))


def by_rule(number: int, captions: list[str]) -> str:
    """The key is good, a second later."""
    time.sleep(1.0)
    lines = (f"{n}: {int('carries the key' in text)}" for n, text in enumerate(captions, 1))
    return "\n".join(lines)


def compared(number: int, captions: list[str]) -> str:
    """In each pair the one with the key is better."""
    words = []
    for text in captions:
        first, second = ("carries the key" in each for each in text.split('"; second: "'))
        words.append("equal" if first == second else "1" if first else "2")
    return "\n".join(f"{n}: {word}" for n, word in enumerate(words, 1))


def unclear(number: int, captions: list[str]) -> str:
    """Prose, then contradictions, then a flood."""
    if number % 3 == 1:
        return "Whoever carries the key is further on; all the others are not."
    if number % 3 == 2:
        return "\n".join(f"{n}: {value}" for n in range(1, 21) for value in (0, 1))
    return "\n".join(f"{n}: 1" for n in range(21, 9000))


def searched(server: ModelServer, *more: str, env_steps: int = 60_000) -> tuple[str, ...]:
    model = f"--model openai/test --base-url {server.base_url} --env-steps {env_steps}"
    flags = f"--env doorkey --task reach_goal {model} --rewards labels {QUICK}"
    return ("search", *flags.split(), *more)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-key-of-the-test")


def events(eureka: CommandLine, kind: str) -> list[dict[str, Any]]:
    shown = eureka.json("show", str(eureka.run_folder()), "--events")["entries"]
    return [each["fields"] for each in shown if each["kind"] == kind]


@pytest.mark.parametrize("method", ["retrieval", "classification", "ranking"])
def test_labels_that_come_late_are_learned_told_and_exported(
    eureka: CommandLine, tmp_path: Path, method: str
) -> None:
    with ModelServer(Model(compared if method == "ranking" else by_rule)) as server:
        eureka(*searched(server, "--labels", method, env_steps=120_000))
        requests = [each for each in server.requests if is_label(each)]
    folder = eureka.run_folder()
    answered = events(eureka, "captions-labelled")
    assert 1 <= len(answered) <= len(requests)
    given = [label for each in answered for label in each["labels"]]
    assert {each["value"] for each in given} <= {0.0, 0.5, 1.0}
    shown = eureka.json("show", str(folder))
    best = shown["best"]["id"]
    learned = eureka.json("show", str(folder), best)["outcome"]["learned"]
    assert learned["method"] == method
    assert 0 < learned["labelled"] <= learned["captions"]
    if method == "retrieval":
        assert all("carries the key" in text for text, value in learned["best"].items() if value)
    assert "A model labelled" in " ".join(eureka("show", str(folder), best).split())
    roles = eureka.json("show", str(folder), "--cost")["by_role"]
    costs = {each["role"]: each["requests"] for each in roles}
    assert costs["labeller"] == len(requests)

    eureka("export", str(folder), "--out", str(tmp_path / "export"))
    exported = json.loads((tmp_path / "export" / "learned.json").read_text())
    assert len(exported["codes"]) == len(exported["values"]) == len(exported["counts"])
    texts = {
        met["code"]: met["text"] for each in exported["asked"] for met in each.get("captions", ())
    }
    told = [label for each in exported["asked"] for label in each.get("labels", ())]
    assert told == given
    assert all(each["code"] in texts for each in told)
    script = "import torch, reward\nprint(reward.compute_reward(torch.ones(2), torch.ones(2))[0])"
    (tmp_path / "export" / "paid.py").write_text(script)
    ran = subprocess.run(
        [sys.executable, "paid.py"], cwd=tmp_path / "export", capture_output=True, text=True
    )
    assert "tensor([0., 0.])" in ran.stdout, ran.stderr


def test_a_model_that_cannot_be_read_costs_labels_and_nothing_else(eureka: CommandLine) -> None:
    with ModelServer(Model(unclear)) as server:
        output = eureka(*searched(server))
    answered = events(eureka, "captions-labelled")
    assert answered
    assert all(label["value"] is None for each in answered for label in each["labels"])
    assert all("have no clear answer" in each["failure"] for each in answered)
    shown = eureka.json("show", str(eureka.run_folder()))
    assert [each["stage"] for each in shown["attempts"]] == ["trained", "trained"]
    assert "have no clear answer" in output
    times = Counter(
        caption["code"] for each in events(eureka, "captions-asked") for caption in each["captions"]
    )
    assert max(times.values()) <= 3


def test_labels_need_no_metric(eureka: CommandLine) -> None:
    labels, comparisons = Model(by_rule), list[Asked]()

    def model(asked: Asked) -> str:
        order = asked.turns[-1][1]
        if "Which colour has the square" in order:
            return "It is yellow."
        if "First name the sub-goals" in order:
            return '```json\n{"sub_goals": ["it has the key", "it is at the goal"]}\n```'
        if "Which one does the task better?" not in order:
            return labels(asked)
        comparisons.append(asked)
        return '```json\n{"first": [2, 1], "second": [1, 2], "better": "first"}\n```'

    with ModelServer(model) as server:
        eureka(*searched(server, "--fitness", "judged", env_steps=120_000))
    shown = eureka.json("show", "latest")
    assert [each["stage"] for each in shown["attempts"]] == ["trained", "trained"]
    assert labels.asked > 0
    assert len(comparisons) == 2


def test_a_killed_search_knows_its_labels_and_pays_for_none_twice(eureka: CommandLine) -> None:
    model = Model(by_rule)
    with ModelServer(model) as server:
        arguments = searched(server, env_steps=200_000)
        process = eureka.popen(*arguments, "--snapshot-interval", "0.1")

        def labels() -> list[str]:
            return [each.prompt for each in server.requests if is_label(each)]

        wait_for(lambda: len(labels()) >= 2, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = len(labels())
        eureka("resume", str(eureka.run_folder()))
        prompts = Counter(labels())
    asked = events(eureka, "captions-asked")
    answered = [each["number"] for each in events(eureka, "captions-labelled")]
    assert len(asked) == len(prompts)
    assert sorted(set(answered)) == sorted(answered)
    assert set(range(before)) <= {each["number"] for each in asked}
    # what was in flight at the kill has no reply and is asked again, nothing else
    assert sum(prompts.values()) - len(prompts) <= AT_ONCE
    assert len(answered) >= before
    learned = eureka.json("show", str(eureka.run_folder()), "1-01")["outcome"]["learned"]
    assert learned["labelled"] > 0


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--env", "doorkey"), "the offline designer is none"),
        (("--env", "cartpole", "--model", "openai/test"), "take craft or doorkey, or write them"),
        (("--env", "doorkey", "--model", "openai/test", "--labels", "guess"), "retrieval"),
    ],
)
def test_what_cannot_be_labelled_is_refused(
    eureka: CommandLine, flags: tuple[str, ...], says: str
) -> None:
    for plan in ((), ("--plan",)):
        said = eureka("search", *flags, *QUICK.split(), "--rewards", "labels", *plan, status=2)
        assert says in " ".join(said.split())
    assert not list((eureka.folder / "runs").glob("*/archive.sqlite"))


def test_a_reward_of_ones_own_is_not_labelled(eureka: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "reward.py").write_text(DESIGN.partition("```python\n")[2].partition("```")[0])
    said = eureka("train", "reward.py", "--env", "doorkey", "--rewards", "labels", status=2)
    assert "a reward of your own is trained without one" in " ".join(said.split())

"""docs/json.md names every key that `--format json` prints, in the section of its command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer, Reply

pytestmark = pytest.mark.slow
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "json.md").read_text(encoding="utf-8")
SHARED = "Objects in several documents"
MAPPINGS = {
    "files",
    "kinds",
    "settings",
    "versions",
    "tasks",
    "components",
    "missing",
    "ended_by",
    "training_overrides",
    "constants",
    "starts",
    "termination_conditions",
    "cards",
    "minutes",
    "packages",
}
"""Objects whose keys are names of things."""
REWARD = """def compute_reward(pole_upright):
    return pole_upright, {'upright': pole_upright}
"""
ANSWERS = (
    f"What is upright pays.\n\n```python\n{REWARD}```",
    f"```python\n{REWARD.replace('return pole_upright', 'return pole_uprigt')}```",
    f"```python\n{REWARD.replace('return pole_upright', 'return 2.0 * pole_upright')}```",
)
PLAN = (
    *("search", "--env", "cartpole", "--plan"),
    *("--model", "openai/test", "--base-url", "http://127.0.0.1:1/v1"),
)
SEARCH = (
    *("search", "balance the pole", "--env", "cartpole", "--model", "openai/test"),
    *("--strategy", "best-of-n", "--iterations", "1", "--samples", "3", "--confirm", "0"),
    *("--finalists", "1", "--final-seeds", "1", "--env-steps", "4096", "--max-tokens", "100000"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small run in which a model designed, and two rewards."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "good.py").write_text(REWARD)
    (folder / "bad.py").write_text("import os\n")
    answers = [Reply(text=text, prompt_tokens=900, completion_tokens=90) for text in ANSWERS]
    with ModelServer(answers) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        run(folder, *SEARCH, "--base-url", server.base_url)
    return folder


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "eureka_agent.cli.main", *arguments, "--format", "json"]
    environment = {**os.environ, "EUREKA_RUNS": str(folder / "runs")}
    result = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode in (0, 1), result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in MAPPINGS:
                yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def section(title: str) -> str:
    """The sections whose heading names the command, and what they share."""
    parts = re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", PAGE, re.MULTILINE)
    found = [
        body
        for heading, body in parts
        if f"./{title}" in re.findall("`([^`]*)`", heading) or heading == SHARED
    ]
    assert len(found) == 2, title
    return "\n".join(found)


@pytest.mark.parametrize(
    ("title", "arguments"),
    [
        ("eureka show RUN", ("show", "latest")),
        ("eureka search --plan", PLAN),
        ("eureka show RUN ATTEMPT", ("show", "latest", "1-01")),
        ("eureka show RUN --cost", ("show", "latest", "--cost")),
        ("eureka resume", ("resume", "latest")),
        ("eureka runs", ("runs",)),
        ("eureka runs --prune", ("runs", "--prune", "--yes")),
        ("eureka envs", ("envs",)),
        ("eureka envs NAME", ("envs", "quadcopter")),
        ("eureka envs --check PATH", ("envs", "--check", "cartpole", "--task", "balance")),
        ("eureka critique", ("critique", "bad.py", "--env", "cartpole")),
        ("eureka brief", ("brief", "latest")),
        ("eureka evaluate", ("evaluate", "latest", "--episodes", "2")),
        ("eureka export", ("export", "latest", "--out", "export")),
        ("eureka doctor", ("doctor",)),
    ],
)
def test_every_key_is_named(folder: Path, title: str, arguments: tuple[str, ...]) -> None:
    document = run(folder, *arguments)
    assert next(iter(document.items())) == ("schema_version", 1)
    named = set(re.findall("`([a-z_]+)`", section(title)))
    assert set(keys(document)) - {"schema_version"} - named == set()

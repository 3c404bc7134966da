"""`--analyst-sees`: the analyst gets the best and the worst episode of a parent as a picture."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_server import Asked, ModelServer, Reply
from PIL import Image
from test_refinement import SMALL
from test_refinement_with_a_model import Reading

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import BaseEntry, Notice
from eureka_agent.search.session import start

pytestmark = pytest.mark.slow
DRAW = """    def draw(self, row):
        from eureka_agent.simulation.drawing import Circle, Drawing
        puck = Circle((self.position[row].item(), 0.0), 0.2, "#ff0000")
        return Drawing((puck,), (0.0, 0.0), 4.8, background="#ffffff")

    def reset_idx("""


class Seeing(Reading):
    """A model that designs, and is shown pictures as an analyst."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[list[dict[str, Any]]] = []
        self.orders: list[str] = []

    def __call__(self, asked: Asked) -> Reply:
        order = asked.turns[-1][1]
        if "What happened in the worst episode" in order:
            content = asked.body["messages"][-1]["content"]
            self.shown.append([] if isinstance(content, str) else content[1:])
            self.orders.append(order)
            return Reply(text="The puck slid away to the right.")
        return super().__call__(asked)


async def search(
    folder: Path, monkeypatch: pytest.MonkeyPatch, model: Seeing
) -> tuple[Run, list[str]]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("EUREKA_RUNS", str(folder.parent / "runs"))
    notices: list[str] = []

    def observe(entry: BaseEntry) -> None:
        if isinstance(entry, Notice):
            notices.append(entry.text)

    with ModelServer(model) as server:
        values = {
            "env": str(folder),
            **SMALL,
            "iterations": 2,
            "samples": 1,
            "schedule": "generations",
            "model": ["openai/test"],
            "base_url": server.base_url,
            "reviewer": "off",
            "analyst_sees": True,
        }
        run = await start(values, None, ["eureka", "search"], observe)
    return run, notices


def copied(puck: Path, folder: Path, draw: str) -> Path:
    import shutil

    shutil.copytree(puck, folder, ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "env.py"
    path.write_text(path.read_text().replace("    def reset_idx(", draw))
    return folder


async def test_the_analyst_sees_both_episodes(
    puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Seeing()
    run, _ = await search(copied(puck, tmp_path / "puck", DRAW), monkeypatch, model)
    (shown,) = model.shown
    (part,) = shown
    data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    with Image.open(io.BytesIO(data)) as image:
        pixels = np.asarray(image.convert("RGB")).astype(int)
    # two rows of six moments of 320 × 240, each with a line above it
    assert pixels.shape == (2 * (24 + 24 + 240), 6 * 320, 3)
    red = (pixels[..., 0] > 200) & (pixels[..., 1] < 80) & (pixels[..., 2] < 80)
    rows = red[: len(red) // 2], red[len(red) // 2 :]
    tiles = [row[:, 320 * column : 320 * (column + 1)] for row in rows for column in range(6)]
    assert all(tile.sum() > 100 for tile in tiles), "a moment without its puck"
    assert "the best in the upper row, the worst in the lower one" in model.orders[0]
    # the record names it, and the designer is told what was seen
    messages = [each for each in run.archive.messages() if each.role == "analyst"]
    assert "(picture: One picture of two episodes" in messages[0].request
    assert any("slid away to the right" in order for order in model.designs)
    assert (run.folder / "attempts" / "1-01" / "moments.jpg").read_bytes() == data


async def test_without_pictures_the_analyst_reads_the_figures(
    puck: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Seeing()
    folder = copied(puck, tmp_path / "puck", "    def reset_idx(")
    run, notices = await search(folder, monkeypatch, model)
    assert model.shown == [[]]
    assert "What it looks like" not in model.orders[0]
    assert sum("the analyst sees no pictures" in each for each in notices) == 1
    assert len(run.archive.attempts(1)) >= 1

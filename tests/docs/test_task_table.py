"""The README's table of tasks says what the cards say."""

from __future__ import annotations

import re
from pathlib import Path

from eureka_agent import resources
from eureka_agent.cards import read_card
from eureka_agent.simulation.catalogue import list_environments

README = Path(__file__).resolve().parents[2] / "README.md"
ROW = re.compile(r"^\| `(\w+)`[^|]* \| (.*) \|$", re.MULTILINE)
UNMEASURED = " ¹"


def test_every_task_is_there_and_bold_where_its_card_says_that_the_reward_decides() -> None:
    text = README.read_text(encoding="utf-8")
    section = text.partition("\n## Tasks\n")[2].partition("\n## ")[0]
    told = {name: tasks.split(", ") for name, tasks in ROW.findall(section)}
    found = {}
    for entry in list_environments():
        folder = resources.resource_folder("envs") / entry.name
        found[entry.name] = [marked(task, folder) for task in entry.tasks]
    assert {name: sorted(tasks) for name, tasks in told.items()} == {
        name: sorted(tasks) for name, tasks in found.items()
    }
    count = sum(map(len, found.values()))
    assert f"{count} tasks in {len(found)} environments" in section


def marked(task: str, folder: Path) -> str:
    """A task as the table writes it."""
    card = read_card(folder, task)
    if card is None:
        return task + UNMEASURED
    return f"**{task}**" if card.decides == "human" else task

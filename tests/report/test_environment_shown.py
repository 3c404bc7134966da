"""`eureka envs` and `eureka envs NAME` on a terminal of 80 columns."""

from __future__ import annotations

import io
import json

import pytest
from click.testing import CliRunner, Result
from rich.console import Console, RenderableType

from eureka_agent.cards import read_card
from eureka_agent.cli.envs import envs
from eureka_agent.records import ChannelSpec, ConstantSpec, TaskDescription
from eureka_agent.report.environment import OUTDATED, render_cards, render_environment
from eureka_agent.simulation.catalogue import find_folder, list_environments
from eureka_agent.simulation.loading import describe, load_environment


def printed(shown: RenderableType) -> str:
    output = io.StringIO()
    Console(file=output, width=80).print(shown)
    assert max(map(len, output.getvalue().splitlines())) <= 80
    return output.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def invoked(*arguments: str) -> Result:
    result = CliRunner().invoke(envs, arguments, env={"COLUMNS": "80"})
    assert result.exit_code == 0, result.output
    return result


def test_the_rules_of_an_environment_are_shown() -> None:
    description = describe(load_environment("craft"))
    text = printed(render_environment(description, ("find_tree",)))
    assert "A table costs 2 wood, a furnace 1 stone" in words(text)
    assert "\n\nOther than there: an episode begins" in text
    assert words(text).count("9 place furnace") == 1  # in the variable `actions` alone


@pytest.fixture(scope="module")
def ant() -> TaskDescription:
    return describe(load_environment("ant"))


def test_each_action_is_shown_with_its_numbers_unit_frame_and_range(ant: TaskDescription) -> None:
    text = words(printed(render_environment(ant, ("run",))))
    assert "joint_torques [0:8] front_left_hip, front_left_knee, back_left_hip," in text
    assert "front_right_knee N·m joint -60 … 60 of the motors" in text
    hand = ChannelSpec(
        name="hand", entries=("x", "y", "z"), unit="m", frame="world", range=(-0.01, 0.01)
    )
    fingers = ChannelSpec(name="fingers", doc="1 closes them")
    arm = ant.model_copy(update={"action_channels": (hand, fingers)})
    text = words(printed(render_environment(arm, ("run",))))
    assert "hand [0:3] x, y, z m world -0.01 … 0.01 fingers [3] 1 closes them" in text


def test_the_order_of_a_quaternion_is_shown_where_there_is_one(ant: TaskDescription) -> None:
    """The ant has a torso_orientation_w of four numbers; the cart-pole turns by one angle, and a
    force on each of four feet is no quaternion."""
    assert "quaternions w, x, y, z: the real part first" in words(
        printed(render_environment(ant, ()))
    )
    other = ant.model_copy(update={"quaternion_order": "xyzw"})
    assert "quaternions x, y, z, w: the real part last" in words(
        printed(render_environment(other, ()))
    )
    feet = tuple(each for each in ant.variables if each.name != "torso_orientation_w")
    without = ant.model_copy(update={"variables": feet})
    assert any(each.shape == (4,) for each in feet)
    assert "quaternions" not in printed(render_environment(without, ()))


def test_the_list_fits_80_columns_with_whole_task_names_and_a_line_for_each() -> None:
    entries = list_environments()
    lines = invoked().output.splitlines()
    assert max(map(len, lines)) <= 80
    names = [name for entry in entries for name in entry.tasks]
    table = lines[1 : lines.index("")]
    assert len(table) == len(names) + len(entries)
    begun = [line.split()[0] for line in table]
    assert begun == [name for entry in entries for name in (entry.name, *entry.tasks)]


def test_the_cards_of_all_tasks_are_shown_in_brief_and_one_in_full() -> None:
    card = read_card(find_folder("cartpole"), "swingup")
    assert card is not None
    both = invoked("cartpole").output
    row = next(line for line in both.splitlines() if line.startswith("swingup "))
    assert row.split()[1:6] == ["human", f"{card.human.mean:.2f}", "±", "0.72", "s"]
    assert row.split()[-1] == "human"  # the better one
    assert any(line.startswith("balance ") for line in both.splitlines())
    assert "cartpole --task NAME" in words(both)
    assert "No card yet" not in both
    one = invoked("cartpole", "--task", "swingup").output
    assert "card of task swingup" in one
    assert "difficulty" in one
    assert not any(line.startswith("balance ") for line in one.splitlines())


def test_the_cards_are_in_the_json_of_one_environment() -> None:
    found = json.loads(invoked("cartpole", "--format", "json").stdout)
    assert set(found["cards"]) == {"balance", "swingup"}
    assert found["cards"]["swingup"]["decides"] == "human"
    assert found["outdated_cards"] == []


def test_a_task_without_a_card_says_how_to_make_one() -> None:
    new = find_folder("cartpole").parent / "_templates" / "torch"
    shown = words(invoked(str(new)).output)
    assert f"--measure {new} --task reach` trains both rewards and makes one" in shown
    card = read_card(find_folder("cartpole"), "swingup")
    text = words(printed(render_cards({"up": card, "down": None}, ["up"], "my env")))
    assert "No card yet: down." in text
    assert "--measure 'my env' --task down` trains" in text
    none = words(printed(render_cards({"up": None, "down": None}, [], "my_env")))
    assert "No card yet: up, down. `eureka envs --measure my_env --task NAME` trains" in none
    assert f" {OUTDATED} " in text


def test_constants_and_parameters_are_shown_with_values_and_units() -> None:
    description = describe(load_environment("quadcopter"))
    constants = (ConstantSpec(name="gain", value=0.02, unit="s", doc="time step"),)
    described = description.model_copy(update={"constants": constants})
    lines = [
        line.split() for line in printed(render_environment(described, ("hover",))).splitlines()
    ]
    assert ["gain", "constant", "0.02", "s"] in lines
    assert ["wind_x", "-1", "…", "1", "N", "default", "0"] in lines
    assert "Parameters" not in printed(
        render_environment(describe(load_environment("humanoid")), ())
    )

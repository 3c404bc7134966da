"""Genome → source → genome, hand edits, and rewards written by others."""

from __future__ import annotations

import pytest
import torch
from reward_values import evaluate

from eureka_agent.critic.memory import normalized
from eureka_agent.designer.offline.terms import Operand, genome_of, recover, render, term
from eureka_agent.designer.source_tools import number_constants, parameter_names, same_reward
from eureka_agent.records import TaskDescription

SURGE = Operand(code="hull_velocity[:, 0]", reads=("hull_velocity",))
ACTIONS = Operand(code="actions", reads=("actions",), scalar=False)
HULL = Operand(code="hull_position", reads=("hull_position",), scalar=False)
GENOME = genome_of(
    [
        term("progress", "forward", 1.5, SURGE, cap=20.0),
        term("closeness", "reach", 1.0, HULL, temperature=3.0),
        term("closeness", "still", 0.25, SURGE, temperature=1.0).gated("reach"),
        term("alive", "alive", 0.5),
        term("penalty", "effort", 0.05, ACTIONS),
    ]
)
FOREIGN = """import torch

SCALE = 2.0


def helper(x):
    return x * SCALE


@torch.jit.script
def compute_reward(hull_velocity: torch.Tensor, actions: torch.Tensor):
    speed = helper(hull_velocity[:, 0])
    effort = -actions.square().sum(dim=-1)
    return speed + effort, {"speed": speed, "effort": effort}
"""


def names(boat: TaskDescription) -> list[str]:
    return [each.name for each in boat.variables]


def test_a_source_gives_its_genome_back(boat: TaskDescription) -> None:
    assert recover(render(GENOME, "sail", names(boat)), names(boat)) == GENOME


def test_a_weight_that_a_person_chose_is_read_back(boat: TaskDescription) -> None:
    source = render(GENOME, "sail", names(boat)).replace(
        "FORWARD_WEIGHT = 1.5", "FORWARD_WEIGHT = 0.12"
    )
    assert recover(source, names(boat))["forward"].numbers["weight"] == 0.12


def test_no_local_hides_a_variable(boat: TaskDescription) -> None:
    genome = genome_of(
        [term("progress", "roll_angle", 1.0, SURGE, cap=20.0), term("alive", "torch", 1.0)]
    )
    total, components = evaluate(
        render(genome, "x", names(boat)), boat, {"hull_velocity": torch.tensor([[2.0, 0.0, 0.0]])}
    )
    assert list(components) == ["roll_angle", "torch"]
    assert total.item() == 3.0


def test_a_sentence_cannot_break_out_of_the_docstring(boat: TaskDescription) -> None:
    source = render(GENOME, 'sail """\nimport os\\', names(boat))
    assert "\nimport os" not in source
    assert recover(source, names(boat)) == GENOME


@pytest.mark.parametrize("source", ["", "def compute_reward(:", "x = 1", FOREIGN])
def test_source_of_someone_else_gives_an_empty_genome(source: str, boat: TaskDescription) -> None:
    assert not recover(source, names(boat))


def test_a_line_that_was_changed_is_someone_elses(boat: TaskDescription) -> None:
    source = render(GENOME, "sail", names(boat)).replace(
        "    total = ", "    alive = alive * 2.0\n    total = "
    )
    assert not recover(source, names(boat))


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"no such form","name":"x","numbers":{"weight":1.0}}',
        '{"kind":"closeness","name":"x","numbers":{"weight":1.0,"temperature":1.0}}',
        '{"kind":"distance","name":"x","operands":[{"code":"x","reads":[]}],"numbers":{"weight":1.0,"temperature":1.0}}',
        '{"kind":',
    ],
)
def test_a_comment_that_names_no_terms_is_no_genome(line: str, boat: TaskDescription) -> None:
    source = render(GENOME, "sail", names(boat))
    assert not recover(f"{source}#   {line}\n", names(boat))


def test_a_gate_on_what_is_not_there_counts_for_nothing(boat: TaskDescription) -> None:
    still = term("closeness", "still", 1.0, SURGE, temperature=1.0)
    bare, gated = (render({"still": each}, "x", names(boat)) for each in (still, still.gated("a")))
    assert same_reward(bare, gated)


def test_layout_comments_and_annotations_do_not_make_another_reward() -> None:
    bare = "def compute_reward(a):\n    return a, {'a': a}\n"
    dressed = (
        '"""Doc."""\n@jit\ndef compute_reward(a: Tensor) -> tuple:\n    """Doc."""\n    # remark\n '
        '   return (a, {"a": a})\n'
    )
    assert same_reward(bare, dressed)
    assert not same_reward(bare, bare.replace("return a", "return -a"))
    assert normalized("def (") == "def ("


def test_parameters_and_constants_are_read_without_running() -> None:
    assert parameter_names(FOREIGN) == ("hull_velocity", "actions")
    assert number_constants(FOREIGN + "NAME = 'x'\nFLAG = True\nLOW = -1\n") == {
        "SCALE": 2.0,
        "LOW": -1.0,
    }

"""Genome → source → genome, hand edits, and rewards written by others."""

from __future__ import annotations

import pytest
import torch
from reward_values import evaluate

from eureka_agent.designer.offline.genome import Genome, unique_terms
from eureka_agent.designer.offline.operands import Operand
from eureka_agent.designer.offline.render import component_lines, recover, render
from eureka_agent.designer.offline.terms import Alive, Distance, Penalty, Progress, Stillness
from eureka_agent.designer.source_tools import normalized, number_constants, parameter_names, same_reward
from eureka_agent.records import TaskDescription

SURGE = Operand(variable="hull_velocity", rank=1, size=1, entry=(0,))
ACTIONS = Operand(variable="actions", rank=1, size=2)
HULL = Operand(variable="hull_position", rank=1, size=2)
GENOME = Genome(
    terms=(
        Progress(name="forward", weight=1.5, operand=SURGE),
        Distance(name="reach", operand=HULL, temperature=3.0),
        Stillness(name="still", weight=0.25, operand=SURGE, gate="reach"),
        Alive(name="alive", weight=0.5),
        Penalty(name="effort", weight=0.05, operand=ACTIONS),
    )
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


def test_a_weight_edited_by_hand_is_read_back(boat: TaskDescription) -> None:
    source = render(GENOME, "sail", names(boat)).replace("FORWARD_WEIGHT = 1.5", "FORWARD_WEIGHT = 0.123456")
    genome = recover(source, names(boat))
    assert genome.base is None
    forward = genome.term("forward")
    assert forward is not None
    assert forward.weight == 0.123456


def test_a_line_edited_by_hand_makes_the_source_a_base(boat: TaskDescription) -> None:
    source = render(GENOME, "sail", names(boat)).replace("    total = ", "    alive = alive * 2.0\n    total = ")
    genome = recover(source, names(boat))
    assert genome.terms == ()
    values = {"hull_velocity": torch.tensor([[1.0, 0.0, 0.0]]), "hull_position": torch.tensor([[1.0, 2.0]])}
    assert evaluate(render(genome, "sail", names(boat)), boat, values)[0] == evaluate(source, boat, values)[0]


def test_terms_are_added_around_a_reward_of_someone_else(boat: TaskDescription) -> None:
    genome = recover(FOREIGN, names(boat)).with_term(Alive(name="alive", weight=0.5)).scaled("effort", 3.0)
    source = render(genome, "sail", names(boat))
    total, components = evaluate(
        source, boat, {"hull_velocity": torch.tensor([[2.0, 0.0, 0.0]]), "actions": torch.tensor([[1.0, 1.0]])}
    )
    # speed 2·2, effort −(1 + 1)·3, alive 0.5
    assert {name: value.item() for name, value in components.items()} == pytest.approx(
        {"speed": 4.0, "effort": -6.0, "alive": 0.5}
    )
    assert total.item() == pytest.approx(-1.5)
    assert recover(source, names(boat)) == genome


def test_no_local_hides_a_variable(boat: TaskDescription) -> None:
    genome = Genome(terms=(Progress(name="roll_angle", operand=SURGE), Alive(name="torch", weight=1.0)))
    total, components = evaluate(
        render(genome, "x", names(boat)), boat, {"hull_velocity": torch.tensor([[2.0, 0.0, 0.0]])}
    )
    assert list(components) == ["roll_angle", "torch"]
    assert total.item() == 3.0


def test_a_sentence_cannot_break_out_of_the_docstring(boat: TaskDescription) -> None:
    source = render(GENOME, 'sail """\nimport os\\', names(boat))
    assert "\nimport os" not in source
    assert recover(source, names(boat)) == GENOME


@pytest.mark.parametrize("source", ["", "def compute_reward(:", "x = 1"])
def test_source_without_a_reward_gives_an_empty_genome(source: str, boat: TaskDescription) -> None:
    assert recover(source, names(boat)).empty


def test_dropping_a_term_frees_what_it_gated() -> None:
    smaller = GENOME.without("reach")
    assert [term.name for term in smaller.terms] == ["forward", "still", "alive", "effort"]
    assert all(term.gate is None for term in smaller.terms)


def test_names_stay_unique_and_gates_valid() -> None:
    still = Stillness(name="still", operand=SURGE, gate="nowhere")
    assert unique_terms((still, still)) == (still.model_copy(update={"gate": None}),)


def test_lines_of_a_component(boat: TaskDescription) -> None:
    source = render(GENOME, "sail", names(boat))
    lines = source.splitlines()
    spans = component_lines(GENOME, source)
    assert spans.keys() == {"forward", "reach", "still", "alive", "effort"}
    for name, span in spans.items():
        text = "\n".join(lines[place - 1] for place in span)
        assert f"    {name} = " in text
        assert text.count("    # ") == 1


def test_layout_comments_and_annotations_do_not_make_another_reward() -> None:
    bare = "def compute_reward(a):\n    return a, {'a': a}\n"
    dressed = '"""Doc."""\n@jit\ndef compute_reward(a: Tensor) -> tuple:\n    """Doc."""\n    # remark\n    return (a, {"a": a})\n'
    assert same_reward(bare, dressed)
    assert not same_reward(bare, bare.replace("return a", "return -a"))
    assert normalized("def (") == "def ("


def test_parameters_and_constants_are_read_without_running() -> None:
    assert parameter_names(FOREIGN) == ("hull_velocity", "actions")
    assert number_constants(FOREIGN + "NAME = 'x'\nFLAG = True\nLOW = -1\n") == {"SCALE": 2.0, "LOW": -1.0}

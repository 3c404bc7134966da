"""What each finding makes of a reward."""

from __future__ import annotations

import random

import pytest

from eureka_agent.designer.offline.compose import scene_of
from eureka_agent.designer.offline.dice import THEMES, Dice
from eureka_agent.designer.offline.genome import Genome
from eureka_agent.designer.offline.operands import Operand
from eureka_agent.designer.offline.steering import EDITS, Patient, improve
from eureka_agent.designer.offline.terms import Alive, Bonus, Distance, Penalty, Smoothness, Stillness
from eureka_agent.records import ComponentSummary, Diagnosis, DiagnosisFinding, TaskDescription

HULL = Operand(variable="hull_position", rank=1, size=2)
BUOY = Operand(variable="buoy_position", rank=1, size=2)
ACTIONS = Operand(variable="actions", rank=1, size=2)
REACH = Distance(name="reach", operand=HULL, goal=BUOY, temperature=1.0)
EFFORT = Penalty(name="effort", weight=0.1, operand=ACTIONS)
ALIVE = Alive(name="alive", weight=0.5)
SLOW = Stillness(name="slow", weight=0.3, operand=HULL)


def edit(
    code: str,
    boat: TaskDescription,
    genome: Genome,
    component: str | None = None,
    cause: str | None = None,
    seed: int = 0,
) -> Genome | None:
    """The genome after one finding's edit."""
    scene, intents = scene_of(boat, boat.sentence)
    finding = DiagnosisFinding.model_validate(
        {"code": code, "message": "m", "advice": "a", "component": component, "cause": cause}
    )
    patient = Patient(
        genome, scene, intents, Dice(random.Random(seed), THEMES[-2]), tuple(term.name for term in genome.terms)
    )
    edited = EDITS[code](patient, finding)
    return None if edited is None else edited[0]


def weight(genome: Genome | None, name: str) -> float:
    assert genome is not None
    term = genome.term(name)
    assert term is not None
    return term.weight


def test_an_early_end_adds_survival_and_posture(boat: TaskDescription) -> None:
    edited = edit("early-termination", boat, Genome(terms=(REACH,)), cause="capsized")
    assert edited is not None
    assert {"alive", "upright"} <= {term.name for term in edited.terms}


def test_an_early_end_doubles_what_is_there(boat: TaskDescription) -> None:
    first = edit("early-termination", boat, Genome(terms=(REACH,)), cause="capsized")
    assert first is not None
    again = edit("early-termination", boat, first, cause="capsized")
    assert weight(again, "alive") == pytest.approx(2.0 * weight(first, "alive"), rel=0.05)


def test_saturated_actions_cost_more(boat: TaskDescription) -> None:
    assert weight(edit("saturated-actions", boat, Genome(terms=(REACH, EFFORT))), "effort") == pytest.approx(0.3)
    added = edit("saturated-actions", boat, Genome(terms=(REACH,)))
    assert added is not None
    assert {type(term) for term in added.terms} & {Penalty, Smoothness}


def test_the_component_that_was_hacked_is_cut(boat: TaskDescription) -> None:
    assert weight(
        edit("reward-hacking", boat, Genome(terms=(REACH, ALIVE)), component="reach"), "reach"
    ) == pytest.approx(0.3)


def test_what_was_not_asked_for_must_not_dominate(boat: TaskDescription) -> None:
    genome = Genome(terms=(REACH, SLOW))
    assert weight(edit("dominant-component", boat, genome, component="slow"), "slow") == pytest.approx(0.12)
    # the distance is what the sentence asks for
    assert edit("dominant-component", boat, genome, component="reach") is None


def test_a_dead_penalty_goes_and_a_dead_bonus_widens_or_grows(boat: TaskDescription) -> None:
    bonus = Bonus(name="success", operand=HULL, goal=BUOY, radius=0.1)
    gone = edit("dead-component", boat, Genome(terms=(REACH, EFFORT)), component="effort")
    assert gone is not None
    assert gone.term("effort") is None
    for seed in range(6):
        revived = edit("dead-component", boat, Genome(terms=(REACH, bonus)), component="success", seed=seed)
        assert revived is not None
        term = revived.term("success")
        assert term is not None
        assert isinstance(term, Bonus)
        assert (term.radius, term.weight) in ((0.3, 1.0), (0.1, 4.0))


def test_a_constant_bonus_for_being_alive_is_left_alone(boat: TaskDescription) -> None:
    assert edit("dead-component", boat, Genome(terms=(REACH, ALIVE)), component="alive") is None


def test_no_learning_reshapes(boat: TaskDescription) -> None:
    edited = {
        edit("no-learning", boat, Genome(terms=(REACH,)), seed=seed) == Genome(terms=(REACH,)) for seed in range(4)
    }
    assert edited == {False}


def test_lost_exploration_makes_penalties_cheap(boat: TaskDescription) -> None:
    assert weight(edit("exploration-lost", boat, Genome(terms=(REACH, EFFORT))), "effort") == pytest.approx(0.03)


def test_a_collapse_halves_the_reward(boat: TaskDescription) -> None:
    edited = edit("collapsed", boat, Genome(terms=(REACH, EFFORT)))
    assert (weight(edited, "reach"), weight(edited, "effort")) == (0.5, 0.05)


def diagnosis(*findings: DiagnosisFinding) -> Diagnosis:
    summary = ComponentSummary(name="reach", values=(1.0,), maximum=1.0, mean=1.0, minimum=1.0, share=1.0)
    return Diagnosis(
        fitness=1.0, fitness_values=(), episode_length_values=(), components=(summary,), findings=findings, text=""
    )


def test_what_still_improves_keeps_its_structure(boat: TaskDescription) -> None:
    scene, intents = scene_of(boat, boat.sentence)
    rising = DiagnosisFinding(code="still-improving", message="m", advice="a")
    for seed in range(5):
        better = improve(Genome(terms=(REACH, EFFORT)), diagnosis(rising), scene, intents, Dice(random.Random(seed)))
        assert [term.name for term in better.genome.terms] == ["reach", "effort"]
        assert better.genome != Genome(terms=(REACH, EFFORT))


def test_the_reasoning_repeats_what_was_found(boat: TaskDescription) -> None:
    scene, intents = scene_of(boat, boat.sentence)
    finding = DiagnosisFinding(code="saturated-actions", message="62% of the actions are at their bounds.", advice="a")
    better = improve(Genome(terms=(REACH, EFFORT)), diagnosis(finding), scene, intents, Dice(random.Random(0)))
    assert better.notes[0] == "62% of the actions are at their bounds. So 'effort' is tripled."


def test_a_component_is_not_treated_twice(boat: TaskDescription) -> None:
    scene, intents = scene_of(boat, boat.sentence)
    saturated = DiagnosisFinding(code="saturated-actions", message="m", advice="a")
    dead = DiagnosisFinding(code="dead-component", message="m", advice="a", component="effort")
    for seed in range(5):
        better = improve(
            Genome(terms=(REACH, EFFORT)), diagnosis(dead, saturated), scene, intents, Dice(random.Random(seed))
        )
        assert weight(better.genome, "effort") > 0.2

"""Captions of the built-in environments: their codes and words fit the states that they are of."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.label_records import LONGEST_CAPTION, MOST_CODE
from eureka_agent.search.labelling import CAPTIONED
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.class_checks import check_class
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import PREVIOUS_PREFIX

STEPS = 300


def values_of(cls: type[VecTask], **changed: float) -> dict[str, Tensor]:
    """Arguments of `caption_codes` for one state: zeros, but for these."""
    values = {name: torch.zeros(1) for name in cls.caption_variables}
    unknown = changed.keys() - values.keys()
    assert not unknown
    return values | {name: torch.tensor([value]) for name, value in changed.items()}


def caption(cls: type[VecTask], values: Mapping[str, Tensor]) -> str:
    return cls.caption(int(cls.caption_codes(values)))


def test_those_that_a_refusal_names_have_captions_and_no_other_does() -> None:
    loaded = {each.name: load_environment(each.name) for each in list_environments()}
    assert tuple(name for name, each in loaded.items() if describe(each).captions) == CAPTIONED


@pytest.mark.parametrize("name", CAPTIONED)
def test_random_actions_meet_many_short_captions_each_with_its_code(name: str) -> None:
    loaded = load_environment(name)
    cls, (_, task) = loaded.environment_class, loaded.task(None)
    environment = loaded.make(task, 32)
    environment.reset()
    plain = [each for each in cls.caption_variables if not each.startswith(PREVIOUS_PREFIX)]
    met: dict[int, str] = {}
    generator = torch.Generator().manual_seed(0)
    for _ in range(STEPS):
        variables = environment.read_variables()
        before = {PREVIOUS_PREFIX + each: variables[each].clone() for each in plain}
        actions = cls.actions_from(torch.rand(32, 1, generator=generator))
        now = environment.advance(actions).variables
        values = {each: (before | dict(now))[each] for each in cls.caption_variables}
        codes = cls.caption_codes(values)
        assert codes.dtype == torch.int64
        # each row for itself
        last = {each: value[-1:] for each, value in values.items()}
        assert int(cls.caption_codes(last)) == int(codes[-1])
        met |= {code: cls.caption(code) for code in codes.tolist()}
        environment.reset_done()
    assert 10 < len(met) < 2000
    assert len(set(met.values())) == len(met)
    assert all(0 <= code <= MOST_CODE for code in met)
    assert all(text.isprintable() and 0 < len(text) <= LONGEST_CAPTION for text in met.values())


def test_captions_of_a_door_and_its_key() -> None:
    cls = load_environment("doorkey").environment_class
    first = {"key_distance": 5.0, "door_distance": 3.0, "goal_distance": 9.0}
    left = first | {"columns_past_door": -2.0}
    assert caption(cls, values_of(cls, **left, facing_wall=1.0)) == (
        "it does not carry the key; the door is locked; it is in the left room; a wall is in front"
        " of it; the key is 4 to 6 cells away"
    )
    picked = caption(cls, values_of(cls, **left, has_key=1.0))
    assert picked.startswith("the agent has just picked up the key; it carries the key")
    assert picked.endswith("the door is 2 or 3 cells away")
    held = {"has_key": 1.0, "previous_has_key": 1.0, "facing_door": 1.0}
    opened = caption(cls, values_of(cls, **left, **held, door_unlocked=1.0, door_open=1.0))
    assert opened.startswith("the agent has just unlocked the door")
    assert "the door is open; it is in the left room; the door is in front of it" in opened
    assert opened.endswith("the goal is 7 or more cells away")


def test_captions_of_a_miner() -> None:
    cls = load_environment("craft").environment_class
    far = {f"{kind}_distance": 8.0 for kind in ("tree", "iron", "diamond", "cow")}
    first = far | {"has_wood_pickaxe": 1.0, "previous_has_wood_pickaxe": 1.0, "wood_carried": 4.0}
    assert caption(cls, values_of(cls, **first, stone_distance=2.0)) == (
        "wood pickaxe; 2 or more wood; no stone; stone in view"
    )
    tools = {"stone_distance": 8.0, "has_stone_pickaxe": 1.0, "stone_carried": 1.0}
    made = caption(cls, values_of(cls, **first, **tools, table_near=1.0, furnace_near=1.0))
    assert made == (
        "the agent has just made a stone pickaxe; stone pickaxe; 2 or more wood; has stone; table"
        " and furnace beside; no iron in view"
    )
    assert cls.caption(0) == "no pickaxe; no wood; no stone; tree beside it"


def test_captions_of_an_unknown_variable_are_refused_at_loading() -> None:
    cls = load_environment("doorkey").environment_class
    for names, says in (
        (("previous_has_kei",), "caption_variables has 'previous_has_kei', which is none"),
        ("has_key", "caption_variables"),
    ):
        faulty = type("Faulty", (cls,), {"caption_variables": names})
        with pytest.raises(EnvironmentLoadError, match=says):
            check_class(faulty)

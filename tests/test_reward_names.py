"""Names that an environment's variables may have."""

from __future__ import annotations

import ast
import builtins

import pytest

from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.reward_names import is_argument_name

NAMES = [name for name in dir(builtins) if name not in ("True", "False", "None")]


@pytest.mark.parametrize("name", [*NAMES, "torch", "math", "__x", "_x", "typing", "height"])
def test_a_name_is_one_where_the_critic_takes_it_as_an_argument(name: str) -> None:
    tree = ast.parse(f"def compute_reward({name}):\n    return {name}, {{}}\n")
    assert is_argument_name(name) == (check_allow_list(tree) == [])


@pytest.mark.parametrize("name", ["class", "None", "a b", "", "1st", "ｍ", "ﬁnger", 5, None])
def test_what_python_does_not_take_or_reads_as_another_is_none(name: object) -> None:
    assert not is_argument_name(name)


@pytest.mark.parametrize("name", ["größe", "θ", "x2"])
def test_letters_of_other_alphabets_are_names(name: str) -> None:
    assert is_argument_name(name)

"""Names that are not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from faulty_environments import table

from eureka_agent.errors import EnvironmentLoadError

MISTAKES = table(r"""
misspelt | task.joint('elbwo') | no <joint> named 'elbwo'; it has: cube_root, elbow, left_slide, right_slide, shoulder | did you mean 'elbow'?
of another kind | task.body('tip') | no <body> named 'tip' | 'tip' is the name of a site
no pattern | task.joint(['*_slide']) | '*_slide' is neither the name of a <joint> nor a regular expression: nothing to repeat | '.*_knee' matches all that end in _knee
a free joint in a group | task.joint(['elbow', 'cube_root']) | 'cube_root' is a free joint: a group is of hinges and slides | self.joint('cube_root')
no free joint | task.free_joint('elbow') | 'elbow' is a hinge joint, expected a free one | self.joint('elbow')
a contact with several | task.contact('cube', ['left_pad', 'right_pad']) | contact('cube', ['left_pad', 'right_pad']): expected one name to be touched | only the first may be a list
""")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_names_that_are_not_there(gripper: Callable[..., Any], mistake: str) -> None:
    ask, message, hint = MISTAKES[mistake]
    with pytest.raises(EnvironmentLoadError) as caught:
        eval(ask, {"task": gripper(reset=False)})
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_a_body_looked_up_too_late_is_told(gripper: Callable[..., Any]) -> None:
    environment = gripper()
    assert environment.body("cube").position_w.shape == (4, 3)  # looked up in time
    for ask, name in (
        (lambda: environment.body("arm"), "'arm'"),
        (lambda: environment.contact("upper", "floor"), "'upper'"),
    ):
        with pytest.raises(
            EnvironmentLoadError, match=f"{name} was looked up after the simulation had been made"
        ) as caught:
            ask()
        assert "in __init__" in (caught.value.hint or "")

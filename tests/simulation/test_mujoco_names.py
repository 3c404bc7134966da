"""Names that are not there, and contacts that can never arise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import pytest
from faulty_environments import table
from gripper import MJCF

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.mujoco_names import can_touch

EXCLUDED = '<exclude body1="cube" body2="cup"/>'


@pytest.mark.parametrize(
    "change",
    [
        ("", ""),
        ("<option ", '<option><flag filterparent="disable"/></option><option '),
        (
            EXCLUDED,
            '<pair geom1="upper" geom2="lower"/><exclude body1="left_finger" body2="cube"/>',
        ),
    ],
    ids=["as it is", "parents are compared", "a pair"],
)
def test_what_can_touch_is_what_mujoco_compares(change: tuple[str, str]) -> None:
    model = mujoco.MjModel.from_xml_string(MJCF.replace(*change))
    expected = {
        frozenset((first, second))
        for first in range(model.ngeom)
        for second in range(first + 1, model.ngeom)
        if can_touch(model, [first], [second])
    }
    # all geoms become spheres so large that each is in each
    model.geom_type[:], model.geom_size[:, 0] = mujoco.mjtGeom.mjGEOM_SPHERE, 9.0
    model.geom_rbound[:], model.geom_aabb[:] = 9.0, [0.0, 0.0, 0.0, 9.0, 9.0, 9.0]
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    found = {frozenset(contact.geom.tolist()) for contact in data.contact[: data.ncon]}
    assert found == expected
    assert 20 < len(found) < model.ngeom * (model.ngeom - 1) // 2


MISTAKES = table(r"""
misspelt | task.joint('elbwo') | no <joint> named 'elbwo'; it has: cube_root, elbow, left_slide, right_slide, shoulder | did you mean 'elbow'?
in a list | task.actuator(['elbow_turn', 'lift']) | no <actuator> named 'lift'; it has: elbow_turn, left_push, right_push | use one of these, or write name="lift" into the MJCF
of another kind | task.body('tip') | no <body> named 'tip' | 'tip' is the name of a site
a pattern alone | task.site('t.p') | no <site> named 't.p' | a pattern stands in a list: ['t.p']
no pattern | task.joint(['*_slide']) | '*_slide' is neither the name of a <joint> nor a regular expression: nothing to repeat | '.*_knee' matches all that end in _knee
a number | task.body(3) | 3 names no <body> | the MJCF has: arm, cube
a free joint in a group | task.joint(['elbow', 'cube_root']) | 'cube_root' is a free joint: a group is of hinges and slides | self.joint('cube_root')
no free joint | task.free_joint('elbow') | 'elbow' is a hinge joint, expected a free one | self.joint('elbow')
a contact with nobody | task.contact('cube', 'flor') | no <geom> or <body> named 'flor' | did you mean 'floor'?
a contact that cannot be | task.contact('cube', 'ghost') | 'cube' and 'ghost' can have no contact | contype
a contact across a joint | task.contact('upper', 'lower') | 'upper' and 'lower' can have no contact | <contact><pair>
a contact with several | task.contact('cube', ['left_pad', 'right_pad']) | contact('cube', ['left_pad', 'right_pad']): expected one name to be touched | only the first may be a list
a name of two things | task.contact('cup', 'cube') | 'cup' is a geom of the MJCF, and a body that has other geoms | rename one of them
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

"""Arguments of a reward's call beside variables, and the names in its namespace. No call knows of
another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from training_environments import PointMass, assert_equal, run, saved

from eureka_agent.errors import RewardLoadError
from eureka_agent.simulation.user_modules import TimeLimitError
from eureka_agent.task import Constant, QuaternionOrder, Variable
from eureka_agent.training.reward import RewardContractError, RewardFunction
from eureka_agent.training.trainer import (
    MemberFailed,
    MemberFinished,
    MemberProgress,
    Trainer,
)

VARIABLES = (
    Variable("height", (), "m", "world", "height"),
    Variable("velocity", (3,), "m/s", "world", "velocity"),
    Variable("rotation", (4,), "1", "world", "quaternion"),
    Variable("goal_gap", (), "m", "world", "what the fitness reads", private=True),
)
CONSTANTS = (Constant("dt", 0.02, "s", "time step"), Constant("gain", 3))


def load(source: str, order: QuaternionOrder = "wxyz") -> RewardFunction:
    return RewardFunction.from_source(
        source, VARIABLES, constants=CONSTANTS, quaternion_order=order
    )


def values(batch: int = 2) -> dict[str, Tensor]:
    return {
        "height": torch.arange(batch, dtype=torch.float32),
        "previous_height": torch.arange(batch, dtype=torch.float32) - 1.0,
        "velocity": torch.tensor([[1.0, 2.0, 3.0]]).expand(batch, 3),
        "rotation": torch.tensor([[0.0, 0.0, 0.0, 1.0]]).expand(batch, 4),
    }


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────


def test_constants_arrive_as_floats_and_numbers_keep_their_defaults() -> None:
    reward = load(
        "def compute_reward(height, dt: float, gain, previous_height=None, weight: float = 0.5,"
        " flip: bool = True, *, power=2):\n    assert type(dt) is float and type(gain) is float and"
        " flip is True\n    return (height - previous_height) / dt + gain + weight * power, {}\n"
    )
    assert reward.arguments == ("height", "previous_height")
    # a rise of 1 in 0.02 s, the gain of 3, half of the power of 2
    assert reward(values())[0].tolist() == pytest.approx([50.0 + 3.0 + 1.0] * 2)


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("def compute_reward(dt): return dt, {}", "takes no argument that is a variable", "variables"),
        ("def compute_reward(height, weight=None): return height, {}", "reads 'weight', which is no variable", ""),
        ("def compute_reward(height, gian): return height, {}", "'gian'", "did you mean 'gain'?"),
        ("def compute_reward(height, goal_gap=1.0): return height, {}", "private", "public variables"),
    ],
)  # fmt: skip
def test_an_argument_that_is_nothing_of_this_is_refused(
    source: str, message: str, hint: str
) -> None:
    with pytest.raises(RewardLoadError) as caught:
        load(source)
    assert message in caught.value.message
    assert hint in caught.value.hint


# ── helper functions ──────────────────────────────────────────────────────────────────────────────

PUBLISHED = """
import torch
from isaacgym.torch_utils import *
from utils.torch_jit_utils import quat_mul as multiply, quat_conjugate
from isaacgymenvs.utils.torch_jit_utils import (
    quat_rotate_inverse,
    normalize,
)

@torch.jit.script
def compute_reward(rotation: torch.Tensor, velocity: torch.Tensor) -> Tuple[torch.Tensor, Dict[str, torch.Tensor]]:
    from torch_utils import quat_rotate
    forward = quat_rotate(rotation, velocity)[:, 0]
    nothing = quat_diff_rad(multiply(rotation, quat_conjugate(rotation)), multiply(rotation, quat_conjugate(rotation)))
    return forward + nothing, {"forward": forward, "nothing": nothing}
"""


@pytest.mark.parametrize(("order", "forward"), [("wxyz", -1.0), ("xyzw", 1.0)])
def test_a_published_reward_runs_with_the_environments_order_of_quaternions(
    order: QuaternionOrder, forward: float
) -> None:
    """(0, 0, 0, 1) is half a turn about z where w comes first, and no turn where it comes last."""
    total, _ = load(PUBLISHED, order)(values())
    assert total.tolist() == pytest.approx([forward] * 2)


# ── no state ──────────────────────────────────────────────────────────────────────────────────────

STATEFUL = {
    "a list of the module": ("calls = []", "calls.append(1)\n    count = len(calls)"),
    "a helper's attribute": (
        "",
        "quat_mul.calls = getattr(quat_mul, 'calls', 0) + 1\n    count = quat_mul.calls",
    ),
    "a tensor changed in place": (
        "calls = torch.zeros(1)",
        "calls.add_(1.0)\n    count = calls.item()",
    ),
}


def stateful(kind: str, argument: str = "height") -> str:
    """Its total is the argument times the number of its calls so far."""
    top, body = STATEFUL[kind]
    term = f"{argument}.reshape(len({argument}), -1).sum(dim=1) * count"
    return (
        f"{top}\ndef compute_reward({argument}):\n    {body}\n    total = {term}\n    return total,"
        " {'counted': total}\n"
    )


@pytest.mark.parametrize("kind", STATEFUL)
def test_nothing_stays_from_one_call_to_the_next_and_who_would_keep_it_can_be_found(
    kind: str,
) -> None:
    reward = load(stateful(kind))
    assert [reward(values())[0].tolist() for _ in range(3)] == [[0.0, 1.0]] * 3
    remembering = reward.remembering()
    assert remembering.arguments == reward.arguments
    found = [remembering(values())[0].tolist() for _ in range(3)]
    assert found == [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]
    assert reward(values())[0].tolist() == [0.0, 1.0]
    assert reward.remembering()(values())[0].tolist() == [0.0, 1.0]


def test_the_top_level_counts_under_the_time_limit_of_a_call() -> None:
    reward = load(
        "import os, time\nif os.environ.get('SLOW_TOP_LEVEL'):\n    time.sleep(30)\ndef"
        " compute_reward(height):\n    return height, {}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLOW_TOP_LEVEL", "1")
        with pytest.raises(TimeLimitError):
            reward.begin(values(), 0.2)()


# ── names of components ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("{f'step {int(height[0])}': height}", "'step 5' new and 'step 0' missing"),
        ("{'a': height, **({'b': height} if height[0] < 1.0 else {})}", "'b' missing"),
        ("{f'{i}': height for i in range(int(height[0]))}", "'0', '1', '2', … new"),
    ],
)
def test_the_names_of_the_first_call_are_kept_to(names: str, message: str) -> None:
    reward = load(f"def compute_reward(height):\n    return height, {names}\n")
    reward(values())
    reward(values())
    with pytest.raises(RewardContractError) as caught:
        reward({"height": torch.tensor([5.0, 6.0])})
    assert caught.value.code == "contract"
    assert (
        caught.value.message == f"line 2: the components are not those of the first call: {message}"
    )
    assert "zeros" in caught.value.hint


# ── in a training ─────────────────────────────────────────────────────────────────────────────────

LoadReward = Callable[..., RewardFunction]


def test_a_resumed_training_is_the_unbroken_one_whatever_the_reward_keeps(
    make_trainer: Callable[..., Trainer], point_reward: LoadReward, tmp_path: Path
) -> None:
    source = stateful("a list of the module", PointMass.variables[0].name)
    unbroken, first, second = (make_trainer(1) for _ in range(3))
    unbroken.submit("job", point_reward(source), 7)
    first.submit("job", point_reward(source), 7)
    before = [event for _ in range(2) for event in first.iterate()]
    second.submit("job", point_reward(source), 7, saved(first, "job", tmp_path / "snapshot"))
    assert_equal([*before, *run(second)["job"]], run(unbroken)["job"])


class Scripted:
    """A reward whose components have the names that stand in a list, one entry a call."""

    arguments = ("position",)
    observation = None

    def __init__(self, *names: str) -> None:
        self._names = iter(names)

    def begin(
        self, values: dict[str, Tensor], timeout_s: float
    ) -> Callable[[], tuple[Tensor, dict[str, Tensor]]]:
        total = -values["position"].square().sum(dim=1)
        names = next(self._names)
        return lambda: (total, dict.fromkeys(names, total))


def test_a_process_that_answers_with_other_names_fails_its_training_alone(
    make_trainer: Callable[..., Trainer],
) -> None:
    """The trainer does not leave it to the reward's process to keep to its names."""
    trainer = make_trainer(2)
    trainer.submit("new names", Scripted("ab", "ba", "ac", "ab"), 7)
    trainer.submit("other order", Scripted("ab", "ba", "ab", "ba"), 7)
    events = run(trainer)
    failed = events["new names"][-1]
    assert isinstance(failed, MemberFailed)
    assert (failed.code, failed.env_steps) == ("contract", 3 * 128)
    assert "'c' new and 'b' missing" in failed.reason
    assert isinstance(events["other order"][-1], MemberFinished)
    for event in events["other order"]:
        if isinstance(event, MemberProgress):
            assert list(event.point.components) == ["a", "b"]


@pytest.mark.parametrize("iterations", [1, 2])  # before the first checkpoint, and on it
def test_a_resumed_training_keeps_to_the_names_that_it_had(
    make_trainer: Callable[..., Trainer], tmp_path: Path, iterations: int
) -> None:
    first, second = make_trainer(1), make_trainer(1)
    first.submit("job", Scripted("ab", "ab"), 7)
    for _ in range(iterations):
        first.iterate()
    second.submit("job", Scripted("ac"), 7, saved(first, "job", tmp_path / "snapshot"))
    failed = run(second)["job"][-1]
    assert isinstance(failed, MemberFailed)
    assert failed.code == "contract"

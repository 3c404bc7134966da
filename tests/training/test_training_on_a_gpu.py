"""Whole trainings on a GPU: cartpole in torch, hopper by mujoco_warp. A CPU stands in for the GPU
where there is none.

The stand-in takes every path of a GPU: MuJoCo by mujoco_warp, resets by mask, all slots in every
iteration. Only a GPU can show that its kernels do not round a member's numbers otherwise when its
neighbours change. The tests marked `gpu` show that. The kernels of `mujoco_warp` do round
otherwise.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from training_environments import points, policy_of, run, same, saved

from eureka_agent.settings import TrainingSettings
from eureka_agent.simulation.loading import LoadedEnvironment, load_environment
from eureka_agent.simulation.mujoco_task import MujocoTask
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import Trainer, TrainerEvent

pytestmark = pytest.mark.slow
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
SUBJECTS = ["cartpole/balance", "hopper/run"]
OTHERS = [
    "quadcopter/hover",
    "ball_balance/roll_to",
    "doorkey/reach_goal",
    "craft/collect_stone",
    "ant/run",
    "quadruped/follow",
    "humanoid/run",
    "cabinet/open",
    "allegro_hand/turn",
    "shadow_hand/turn",
    "metaworld/button_press",
]


class Subject:
    """A task on a device, or on the CPU as on one."""

    def __init__(self, reference: str, device: str) -> None:
        name, _, task = reference.partition("/")
        self.loaded: LoadedEnvironment = load_environment(name)
        self.task: Task = self.loaded.task(task)[1]
        self.device = device
        self._class = self.loaded.environment_class
        self.is_exact = device == "cpu" or not issubclass(self._class, MujocoTask)
        """True if equal trainings are equal to the bit. On a GPU, the threads of `mujoco_warp` add
        up in any order."""
        if issubclass(self._class, MujocoTask):
            pytest.importorskip("mujoco_warp")
            # a class of its own, in the same file: that is where its MJCF is looked for
            self._class = type(self._class.__name__, (self._class,), {"simulator": "warp"})

    def make(self, num_envs: int) -> VecTask:
        environment = self._class.create(num_envs, self.device, 0, self.task.options)
        environment.resets_by_mask = True
        environment.reset()
        return environment

    def trainer(self, slots: int, **settings: object) -> Trainer:
        values = {**self.task.training.overrides, "num_envs": 16, "checkpoints": 2, **settings}
        trainer = Trainer(
            self.make, self.task, TrainingSettings.model_validate(values), slots, self.device
        )
        trainer._whole_width = True
        return trainer

    def reward(self, kind: str = "human") -> RewardFunction:
        source = self.loaded.reward_source(self.task, "human" if kind == "human" else "sparse")
        assert source is not None
        return RewardFunction.from_source(source, self._class.all_variables(), allow_private=True)


@pytest.fixture(params=SUBJECTS)
def reference(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=DEVICES)
def subject(reference: str, request: pytest.FixtureRequest) -> Subject:
    return Subject(reference, request.param)


def assert_same(subject: Subject, events: list[TrainerEvent], expected: list[TrainerEvent]) -> None:
    found, wanted = points(events), points(expected)[-len(points(events)) :]
    if (
        not subject.is_exact
    ):  # two equal iterations differ by rounding, and contacts and updates magnify that
        assert found[0].env_steps == wanted[0].env_steps
        assert found[0].reward == pytest.approx(wanted[0].reward, rel=0.02, abs=0.01)
        assert found[0].entropy == pytest.approx(wanted[0].entropy, rel=0.02)
        return
    assert found == wanted
    assert same(policy_of(events), policy_of(expected))


@pytest.mark.gpu  # too slow for a stand-in
@pytest.mark.parametrize(
    ("reference", "steps"),
    [
        ("cartpole/balance", 60_000),
        ("hopper/run", 160_000),
    ],
)
def test_it_learns(reference: str, steps: int) -> None:
    subject = Subject(reference, "cuda")
    trainer = subject.trainer(4, env_steps=steps)
    for seed in range(4):
        trainer.submit(str(seed), subject.reward(), seed)
    events = run(trainer)
    early, late = (
        [each.fitness for of in events.values() for each in points(of)[part] if each.fitness]
        for part in (slice(5, 15), slice(-10, None))
    )
    # seconds upright, or metres, in an episode: of all four, after a few iterations and at the end
    assert sum(late) / len(late) > 2.0 * max(sum(early) / len(early), 0.1)


def test_neighbours_and_place_change_nothing(subject: Subject) -> None:
    settings = {"env_steps": 4 * 32 * 16}
    alone, among = subject.trainer(3, **settings), subject.trainer(3, **settings)
    alone.submit("reference", subject.reward(), 7)
    for name, kind, seed in (
        ("first", "sparse", 1),
        ("second", "human", 2),
        ("reference", "human", 7),
    ):
        among.submit(name, subject.reward(kind), seed)
    assert_same(subject, run(among)["reference"], run(alone)["reference"])


def test_it_goes_on_from_a_snapshot_in_another_slot(subject: Subject, tmp_path: Path) -> None:
    settings = {"env_steps": 6 * 32 * 16}
    unbroken, broken, after = (subject.trainer(3, **settings) for _ in range(3))
    unbroken.submit("reference", subject.reward(), 7)
    expected = run(unbroken)["reference"]
    broken.submit("reference", subject.reward(), 7)
    for _ in range(3):
        broken.iterate()
    after.submit("other", subject.reward("sparse"), 1)
    after.submit(
        "reference", subject.reward(), 7, saved(broken, "reference", tmp_path / "snapshot")
    )
    events = run(after)["reference"]
    assert len(points(events)) == 3
    assert_same(subject, events, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("reference", [*SUBJECTS, *OTHERS])
def test_the_step_loop_never_waits_for_the_gpu(reference: str) -> None:
    subject = Subject(reference, "cuda")
    trainer = subject.trainer(2, env_steps=10 * 32 * 16)
    trainer.submit("job", subject.reward(), 7)
    for _ in range(3):  # kernels are compiled in the first, graphs recorded in the second
        trainer.iterate()
    torch.cuda.set_sync_debug_mode("error")
    try:
        with torch.inference_mode():  # as in `iterate`
            trainer._population.collect(trainer._members, 2, {"actions", "terminated"})
    finally:
        torch.cuda.set_sync_debug_mode("default")

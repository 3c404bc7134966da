"""A task class written for IsaacGymEnvs, with only its base class changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.isaac_gym_task import IsaacGymTask
from eureka_agent.task import Variable
from eureka_agent.training.conformance import check_environment


class Slider(IsaacGymTask):
    """The body is in IsaacGymEnvs' style and knows nothing of this package, up to the marked
    line."""

    def __init__(
        self,
        cfg: dict[str, Any],
        rl_device: str,
        sim_device: str,
        graphics_device_id: int,
        headless: bool,
        virtual_screen_capture: bool,
        force_render: bool,
    ) -> None:
        self.cfg = cfg
        self.reset_dist = self.cfg["env"]["resetDist"]
        self.max_episode_length = 30
        self.cfg["env"]["numObservations"] = 2
        self.cfg["env"]["numActions"] = 1
        super().__init__(
            config=self.cfg,
            rl_device=rl_device,
            sim_device=sim_device,
            graphics_device_id=graphics_device_id,
            headless=headless,
            virtual_screen_capture=virtual_screen_capture,
            force_render=force_render,
        )
        self.dof_pos = torch.zeros(self.num_envs, device=self.device)
        self.dof_vel = torch.zeros(self.num_envs, device=self.device)

    def compute_reward(self) -> None:
        self.rew_buf[:], self.reset_buf[:] = compute_slider_reward(
            self.obs_buf[:, 0],
            self.reset_dist,
            self.reset_buf,
            self.progress_buf,
            self.max_episode_length,
        )

    def compute_observations(self, env_ids: Tensor | None = None) -> Tensor:
        if env_ids is None:
            env_ids = torch.arange(self.num_envs, device=self.device)
        self.obs_buf[env_ids, 0] = self.dof_pos[env_ids]
        self.obs_buf[env_ids, 1] = self.dof_vel[env_ids]
        return self.obs_buf

    def reset_idx(self, env_ids: Tensor) -> None:
        self.dof_pos[env_ids] = 0.2 * (torch.rand(len(env_ids), device=self.device) - 0.5)
        self.dof_vel[env_ids] = 0.0
        self.reset_buf[env_ids] = 0
        self.progress_buf[env_ids] = 0

    def pre_physics_step(self, actions: Tensor) -> None:
        self.dof_vel += self.dt * actions.to(self.device).squeeze(-1) * self.cfg["env"]["maxEffort"]

    def post_physics_step(self) -> None:
        self.progress_buf += 1
        env_ids = self.reset_buf.nonzero(as_tuple=False).squeeze(-1)
        if len(env_ids) > 0:
            self.reset_idx(env_ids)
        self.compute_observations()
        self.compute_reward()

    # ── what is added to it ───────────────────────────────────────────────────────────────────────

    config: ClassVar[dict[str, Any]] = {
        "env": {"numEnvs": 512, "resetDist": 3.0, "maxEffort": 10.0},
        "sim": {"dt": 0.1},
    }
    num_observations = 2
    num_actions = 1
    max_episode_length = 30
    variables = (Variable("dof_pos", (), "m", "world", "position"),)

    def simulate(self) -> None:
        self.dof_pos += self.dt * self.dof_vel

    def compute_variables(self) -> dict[str, Tensor]:
        return {"dof_pos": self.dof_pos}


def compute_slider_reward(
    position: Tensor,
    reset_dist: float,
    reset_buf: Tensor,
    progress_buf: Tensor,
    max_episode_length: int,
) -> tuple[Tensor, Tensor]:
    reward = 1.0 - position * position
    reward = torch.where(torch.abs(position) > reset_dist, torch.ones_like(reward) * -2.0, reward)
    reset = torch.where(torch.abs(position) > reset_dist, torch.ones_like(reset_buf), reset_buf)
    reset = torch.where(progress_buf >= max_episode_length - 1, torch.ones_like(reset_buf), reset)
    return reward, reset


def made(num_envs: int, seed: int = 0, **options: Any) -> Slider:
    environment = Slider.create(num_envs, "cpu", seed, options)
    environment.reset()
    assert isinstance(environment, Slider)
    return environment


def test_sizes_come_from_the_configuration_or_the_class() -> None:
    class Configured(Slider):
        config: ClassVar[dict[str, Any]] = {
            "env": {"episodeLength": 77, "controlFrequencyInv": 2},
            "sim": {"dt": 0.1},
        }

    assert (Configured.num_observations, Configured.max_episode_length, Configured.control_dt) == (
        2,
        77,
        0.2,
    )
    assert (Slider.max_episode_length, Slider.control_dt) == (30, 0.1)


def test_a_size_that_contradicts_the_class_is_told() -> None:
    class Longer(Slider):
        max_episode_length = 99

    with pytest.raises(
        EnvironmentLoadError, match=r"sets max_episode_length to 30 .* class says 99"
    ):
        Longer.create(1, "cpu", 0, {})


def test_the_terminal_state_is_seen_before_the_reset() -> None:
    environment = made(2)
    environment.dof_pos[1] = 2.95
    environment.dof_vel[1] = 1.0
    transition = environment.advance(torch.zeros(2, 1))
    assert transition.terminated.tolist() == [False, True]
    assert transition.truncated.tolist() == [False, False]
    assert float(transition.variables["dof_pos"][1]) == pytest.approx(3.05)
    assert float(transition.variables["native_reward"][1]) == -2.0
    observations = environment.reset_done()
    assert abs(float(observations[1, 0])) <= 0.1
    assert environment.progress_buf.tolist() == [1, 0]
    assert environment.advance(torch.zeros(2, 1)).terminated.tolist() == [False, False]


def test_time_outs_are_told_apart_by_progress() -> None:
    environment = made(2)
    environment.progress_buf[0] = 28
    # the task itself flags a row that has made max_episode_length - 1 = 29 steps
    transition = environment.advance(torch.zeros(2, 1))
    assert transition.truncated.tolist() == [True, False]
    assert transition.terminated.tolist() == [False, False]
    assert environment.timeout_buf.tolist() == [1, 0]


def test_resets_depend_on_the_rows_own_stream_alone() -> None:
    many, alone = made(5, seed=1), made(1, seed=2)
    many.seed_rows(torch.tensor([3]), torch.tensor([8]))
    alone.seed_rows(torch.tensor([0]), torch.tensor([8]))
    torch.manual_seed(0)
    many.reset()
    torch.manual_seed(1)
    alone.reset()
    assert float(many.dof_pos[3]) == float(alone.dof_pos[0])
    assert len(set(many.dof_pos.tolist())) == 5


def test_its_own_reward_is_a_private_variable() -> None:
    private = [variable.name for variable in Slider.all_variables() if variable.private]
    assert private == ["native_reward"]
    environment = made(1)
    environment.dof_pos[0] = 0.5
    environment.dof_vel[0] = 0.0
    values = environment.advance(torch.zeros(1, 1)).variables
    assert float(values["native_reward"][0]) == pytest.approx(0.75)
    assert set(values) == {variable.name for variable in Slider.all_variables()}


def test_it_keeps_the_contract_as_a_folder(write_folder: Callable[..., Path]) -> None:
    task = (
        "from eureka_agent.task import Task\ndef fitness(native_reward):\n    return"
        " native_reward\ntask = Task(sentence='stay', fitness=fitness, fitness_doc='return',"
        " options={'resetDist': 2.0})\n"
    )
    reward = (
        "def compute_reward(native_reward):\n    return native_reward, {'native_reward':"
        " native_reward}\n"
    )
    source = Path(__file__).read_text().split("def made(")[0]
    files = {
        "env.py": source,
        "tasks/go.py": task,
        "rewards/human.py": reward,
        "rewards/sparse.py": reward,
    }
    results = check_environment(str(write_folder(files=files)), rollout_s=0.2)
    assert [result for result in results if not result.passed] == []

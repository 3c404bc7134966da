"""A small environment as a person writes one, a lift in a shaft, and ways to break it."""

from __future__ import annotations

from pathlib import Path

ENVIRONMENT = '''import torch

from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Variable


class Lift(VecTask):
    """A lift in a shaft."""

    variables = (
        Variable("height", (), "m", "world", "height of the lift"),
        Variable("motion", (2,), "m/s", "world", "velocity of the lift, and of its counterweight"),
    )
    num_observations = 2
    num_actions = 1
    max_episode_length = 100
    control_dt = 0.1
    termination_causes = ("hit_the_roof",)

    def __init__(self, num_envs, device="cpu", seed=0):
        super().__init__(num_envs, device, seed)
        self.height = torch.zeros(num_envs)
        self.velocity = torch.zeros(num_envs)

    def pre_physics_step(self, actions):
        self.velocity = 0.9 * self.velocity + 0.1 * actions[:, 0]

    def simulate(self):
        self.height = self.height + 0.1 * self.velocity

    def compute_observations(self):
        self.obs_buf[:, 0] = self.height
        self.obs_buf[:, 1] = self.velocity

    def compute_variables(self):
        return {
            "height": self.height,
            "motion": torch.stack((self.velocity, -self.velocity), dim=1),
        }

    def compute_termination(self):
        return {"hit_the_roof": self.height > 5.0}

    def reset_idx(self, env_ids):
        self.height[env_ids] = self.random.uniform(env_ids, 1, -1.0, 1.0)[:, 0]
        self.velocity[env_ids] = 0.0
'''

TASK = """from eureka_agent.task import Task


def fitness(height):
    return height


task = Task(sentence="go up", fitness=fitness, fitness_doc="height of the lift")
"""

REWARD = """def compute_reward(height, motion):
    return height, {"height": height}
"""

PHYSICS = "        self.height = self.height + 0.1 * self.velocity\n"
MADE = "        self.velocity = torch.zeros(num_envs)\n"
RESET = "        self.velocity[env_ids] = 0.0\n"


def table(text: str) -> dict[str, list[str]]:
    """Rows of `name | field | field …` by name: \\n is a new line in a field, ∅ an empty one."""
    rows = [line.split(" | ") for line in text.strip("\n").splitlines()]
    return {
        name: ["" if field == "∅" else field.replace("\\n", "\n") for field in fields]
        for name, *fields in rows
    }


def grouped(fields: list[str], size: int = 2) -> list[tuple[str, ...]]:
    """Fields in tuples of so many, such as old and new text."""
    return [tuple(fields[start : start + size]) for start in range(0, len(fields), size)]


def line_of(text: str, part: str) -> int:
    """Number of the first line with `part` in it."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def after_steps(steps: int, code: str) -> tuple[tuple[str, str], ...]:
    """Changes that have the lift run `code` in each step once it has made so many, in whatever
    instance."""
    counted = f"        self.steps += 1\n        if self.steps > {steps}:\n            {code}\n"
    return ((MADE, f"{MADE}        self.steps = 0\n"), (PHYSICS, PHYSICS + counted))


def write_lift(
    folder: Path, *changes: tuple[str, str], task: str = TASK, rewards: dict[str, str] | None = None
) -> Path:
    """The lift's folder with these changes, (old text, new text), of its env.py; `rewards` are
    further files by name."""
    text = ENVIRONMENT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    files = {"env.py": text, "tasks/up.py": task}
    files |= {f"rewards/{name}.py": source for name, source in (rewards or {}).items()}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder

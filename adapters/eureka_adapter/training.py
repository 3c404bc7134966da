"""One training as its loop sees it: the reward, the curve, the policies and states it leaves."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from eureka_adapter.faults import EnvironmentFault, RewardFault
from eureka_adapter.rewards import Reward
from eureka_adapter.rows import REST, Rows, Values

if TYPE_CHECKING:
    from eureka_adapter.job import Job

Save = Callable[[Path], None]
CURVE_EVENTS = 200


class Training:
    """One training of a job. Its loop calls `step` once per control step, then `keep`, and `end`
    when it is over."""

    def __init__(self, job: Job, entry: Mapping[str, Any]) -> None:
        """`entry`: of job.json."""
        self.job = job
        self.id: str = entry["id"]
        self.seed: int = entry["seed"]
        self.state: Path | None = job.folder / entry["state"] if entry.get("state") else None
        """Saved state to go on from."""
        self.env_steps = 0
        self._reward_path = job.folder / entry["reward"]
        self._reward: Reward | None = None
        self._budget: float = job.fields.get("env_steps", float("inf"))
        self._rungs = sorted(entry.get("rungs") or [])
        self._policies: list[dict[str, Any]] = []
        self._sums: Tensor | None = None
        self._causes: list[str] = []
        self._steps = self._interval_began = 0
        self._saves: list[Path] = []
        self._asked: int | None = None

    @property
    def over(self) -> bool:
        """True once the training has had its env steps, or was cancelled."""
        return self.env_steps >= self._budget or self.cancelled

    @property
    def cancelled(self) -> bool:
        """True if no answer is wanted any more."""
        return (self.job.folder / "requests" / f"cancel-{self.id}").exists()

    def begin(self, start: Values | None = None, env_steps: int = 0) -> None:
        """Load the reward; the first step follows. `start`: values of the start states. `env_steps`
        of the state that the training goes on from. Raises RewardFault."""
        self.env_steps = self._interval_began = env_steps
        self._saved_at = time.monotonic()
        self._rungs = [rung for rung in self._rungs if rung > env_steps]
        with self._named():
            self._reward = Reward(self._reward_path, self.job)
        self._rows = Rows(self.job, start, self._reward.arguments)

    @torch.no_grad()
    def step(
        self,
        values: Values,
        actions: Any,
        terminated: Any,
        truncated: Any,
        causes: Values | None = None,
        start: Values | None = None,
    ) -> Tensor:
        """Total of the reward for the state that each environment reached, before any reset; shape
        (num_envs,). `actions`: as they were applied. `causes`: rows by cause of an early end.
        `start`: values after the resets; rows without one are ignored. Raises RewardFault."""
        if self._reward is None:
            self.begin()
        assert self._reward is not None
        rows = self._rows
        given = rows.take(values, actions, terminated, truncated, causes)
        with self._named():
            result = self._reward(given)
        parts = result.double()
        sums = [parts.sum(1), parts.abs().sum(1), parts.square().sum(1)]
        ended = torch.stack([rows.fitness, rows.length, *rows.ends.values()])
        sums = torch.cat([*sums, (ended * rows.done).sum(1)])
        if self._sums is not None and list(rows.ends) != self._causes:
            raise EnvironmentFault("`causes` has other names than in the step before")
        self._causes = list(rows.ends)
        self._sums = sums if self._sums is None else self._sums + sums
        rows.finish(start)
        self._steps += parts.shape[1]
        self.env_steps += parts.shape[1]
        if self.env_steps - self._interval_began >= max(self._budget / CURVE_EVENTS, 1):
            self._report_curve()
        return result[0]

    def keep(
        self, save_policy: Save, save_state: Save | None = None, env_steps: int | None = None
    ) -> None:
        """Save what is due: policies at rungs, a state now and then and when asked. `env_steps`:
        those that the state contains, where a part of the last ones is lost with it."""
        while self._rungs and self._rungs[0] <= min(self.env_steps, self._budget - 1):
            self._save_policy(save_policy, self._rungs.pop(0))
        if save_state is not None and self.wants_save():
            at = self.env_steps if env_steps is None else env_steps
            path = self._written(save_state, f"state-{self.id}-{at}.pt")
            self.job.event("saved", training=self.id, env_steps=at, state=path.name)
            self._saved_at = time.monotonic()
            self._saves = [*(each for each in self._saves if each != path), path]
            while len(self._saves) > 2:  # the program may still read the last one
                self._saves.pop(0).unlink()

    def wants_save(self) -> bool:
        """True when a state is due: the period has passed, or `save` was asked since the last."""
        try:
            asked: int | None = (self.job.folder / "requests" / "save").stat().st_mtime_ns
        except OSError:
            asked = None
        if asked is not None and asked != self._asked:
            self._asked = asked
            return True
        return time.monotonic() - self._saved_at >= self.job.fields["save_every_s"]

    def end(self, save_policy: Save) -> None:
        """Save the last policy; nothing is said if the training was cancelled."""
        if self.cancelled:
            return
        if self._steps:
            self._report_curve()
        for rung in self._rungs:
            self._save_policy(save_policy, rung)
        path = self._written(save_policy, f"policy-{self.id}-end.npz")
        last = {"env_steps": self.env_steps, "policy": path.name}
        policies = [*self._policies, last]
        self.job.event("trained", training=self.id, env_steps=self.env_steps, policies=policies)

    def _save_policy(self, save: Save, rung: int) -> None:
        path = self._written(save, f"policy-{self.id}-{rung}.npz")
        self._policies.append({"env_steps": rung, "policy": path.name})
        self.job.event("rung", training=self.id, env_steps=rung, policy=path.name)

    def _written(self, save: Save, name: str) -> Path:
        """File that is whole from the moment it has its name."""
        part = self.job.folder / f"part-{name}"
        save(part)
        return part.replace(self.job.folder / name)

    def _report_curve(self) -> None:
        assert self._sums is not None
        assert self._reward is not None
        names, steps = ("total", *(self._reward.terms or ())), self._steps
        size, numbers = len(names), self._sums.tolist()
        means, magnitudes, squares = (
            [each / steps for each in numbers[part * size : (part + 1) * size]] for part in range(3)
        )
        fitness, length, *counts = numbers[3 * size :]
        ends = {name: int(count) for name, count in zip(self._causes, counts) if count}
        if REST in ends and REST not in self.job.description["ends"]:
            raise EnvironmentFault(
                "an episode ended early without a cause",
                f"name one of {list(self.job.description['ends'])} in `causes`",
            )
        episodes = sum(ends.values())
        self.job.event(
            "curve",
            training=self.id,
            env_steps=self.env_steps,
            fitness=fitness / episodes if episodes else None,
            episode_length=length / episodes if episodes else None,
            episodes=episodes,
            reward=means[0],
            terms={
                name: {
                    "mean": means[at],
                    "magnitude": magnitudes[at],
                    "deviation": max(squares[at] - means[at] ** 2, 0.0) ** 0.5,
                }
                for at, name in enumerate(names)
                if at
            },
            ends=ends,
        )
        self._sums, self._steps, self._interval_began = None, 0, self.env_steps

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Put the training's id on faults of its reward."""
        try:
            yield
        except RewardFault as fault:
            fault.training = self.id
            raise


def save_arrays(path: Path, tensors: Mapping[str, Any]) -> None:
    """Write tensors and arrays by name as .npz, which needs no pickle."""
    import numpy

    arrays = {
        name: each.detach().cpu().numpy() if isinstance(each, Tensor) else numpy.asarray(each)
        for name, each in tensors.items()
    }
    with path.open("wb") as file:
        numpy.savez(file, **arrays)


def load_arrays(path: Path) -> dict[str, Tensor]:
    """Tensors by name from a file of `save_arrays`; pickles in it are refused."""
    import numpy

    with numpy.load(path, allow_pickle=False) as file:
        return {name: torch.from_numpy(file[name]) for name in file.files}

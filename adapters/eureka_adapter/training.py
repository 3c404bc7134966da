"""One training as its loop sees it: the reward, the curve, the policies and states it leaves."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from eureka_adapter.faults import Fault
from eureka_adapter.job import Job
from eureka_adapter.rewards import Reward
from eureka_adapter.rows import REST, Rows, Step, Values

Save = Callable[[Path], None]
LOOK_EVERY_S = 0.05


class Training:
    """One training of a job. Its loop calls `begin`, then `step` for each control step and `keep`
    when it likes, and `end` when the training is over."""

    def __init__(self, job: Job, entry: Mapping[str, Any]) -> None:
        """`entry`: of job.json."""
        self.job = job
        self.id: str = entry["id"]
        self.seed: int = entry["seed"]
        self.state: Path | None = job.folder / entry["state"] if entry["state"] else None
        """Saved state to go on from."""
        self.env_steps = 0
        self._path = job.folder / entry["reward"]
        self._budget: float = job.fields.get("env_steps", math.inf)
        num_envs = job.num_envs / len(job.fields["trainings"])
        # often enough for a slow simulator, seldom enough for millions of steps, and by their
        # number alone, so that equal trainings have equal curves
        self.curve_every = min(max(32 * num_envs, self._budget / 1000), 256 * num_envs)
        """Env steps between two events of its curve."""
        self._rungs: list[int] = sorted(entry["rungs"])
        self._policies: list[dict[str, Any]] = []
        self._states: list[str] = []
        self._sums: tuple[Tensor, ...] = ()
        self._is_cancelled, self._asked, self._seen, self._look_at = False, 0, 0, 0.0

    @property
    def over(self) -> bool:
        """True once the training has had its env steps, or was cancelled."""
        return self.env_steps >= self._budget or self.cancelled

    @property
    def cancelled(self) -> bool:
        """True if no answer is wanted any more."""
        self._look()
        return self._is_cancelled

    def begin(self, start: Values | None = None, env_steps: int = 0) -> None:
        """Load the reward; all environments were just reset. `start`: values of the start states.
        `env_steps`: those of the state that the training goes on from. Raises RewardFault."""
        self.env_steps = self._reported = env_steps
        self._rungs = [rung for rung in self._rungs if rung > env_steps]
        self._saved_at = time.monotonic()
        self._reward = Reward(self._path, self.job, self.id)
        self._rows = Rows(self.job, start, self._reward.arguments)

    @torch.no_grad()
    def step(self, step: Step) -> Tensor:
        """Total of the reward; shape (num_envs,). Raises RewardFault."""
        rows, result = self._rows, self._reward(self._rows.take(step))
        parts = result.double()
        of_parts = torch.stack([parts, parts.abs(), parts.square()]).sum(dim=2)
        of_ended = torch.stack([rows.fitness, rows.length, *rows.ends.values()]) * rows.done
        now = (of_parts, of_ended.sum(dim=1))
        self._sums = tuple(map(torch.add, self._sums, now)) if self._sums else now
        self.env_steps += len(rows.done)
        if self.env_steps - self._reported >= self.curve_every:
            self._report_curve()
        return result[0]

    def keep(
        self, save_policy: Save, save_state: Save | None = None, env_steps: int | None = None
    ) -> None:
        """Save what is due: policies at rungs, and states. `env_steps`: those of a state that does
        not contain the last ones, which are repeated when the training goes on from it."""
        self._keep_rungs(save_policy, min(self.env_steps, self._budget - 1))
        if save_state is None or not self.wants_save():
            return
        at = self.env_steps if env_steps is None else env_steps
        name = self._written(save_state, f"state-{self.id}-{at}.pt")
        self.job.event("saved", training=self.id, env_steps=at, state=name)
        self._saved_at = time.monotonic()
        self._states = [each for each in self._states if each != name] + [name]
        if len(self._states) > 2:  # the program may still be reading the last but one
            (self.job.folder / self._states.pop(0)).unlink()

    def wants_save(self) -> bool:
        """True when a state is due: the period has passed, or `save` was asked anew."""
        self._look()
        is_new, self._seen = self._asked != self._seen, self._asked
        return is_new or time.monotonic() - self._saved_at >= self.job.fields["save_every_s"]

    def _look(self) -> None:
        """Look for requests; not at each of many short steps."""
        if time.monotonic() < self._look_at:
            return
        folder, self._look_at = self.job.folder / "requests", time.monotonic() + LOOK_EVERY_S
        self._is_cancelled = (folder / f"cancel-{self.id}").exists()
        with contextlib.suppress(OSError):
            self._asked = (folder / "save").stat().st_mtime_ns

    def end(self, save_policy: Save) -> None:
        """Save the last policy. Nothing is said of a training that was cancelled."""
        if self.cancelled:
            return
        if self._sums:
            self._report_curve()
        self._keep_rungs(save_policy, math.inf)
        policy = self._written(save_policy, f"policy-{self.id}-end.npz")
        policies = [*self._policies, {"env_steps": self.env_steps, "policy": policy}]
        self.job.event("trained", training=self.id, env_steps=self.env_steps, policies=policies)

    def _keep_rungs(self, save_policy: Save, until: float) -> None:
        while self._rungs and self._rungs[0] <= until:
            rung = self._rungs.pop(0)
            policy = self._written(save_policy, f"policy-{self.id}-{rung}.npz")
            self._policies.append({"env_steps": rung, "policy": policy})
            self.job.event("rung", training=self.id, **self._policies[-1])

    def _written(self, save: Save, name: str) -> str:
        """Name of a file that is whole from the moment it has it."""
        part = self.job.folder / f"part-{name}"
        save(part)
        return part.replace(self.job.folder / name).name

    def _report_curve(self) -> None:
        of_parts, of_ended = self._sums
        means, magnitudes, squares = of_parts / (self.env_steps - self._reported)
        deviations = (squares - means.square()).clamp(min=0).sqrt()
        of_total, *of_terms = torch.stack([means, magnitudes, deviations], dim=1).tolist()
        names = ("mean", "magnitude", "deviation")
        terms = {term: dict(zip(names, each)) for term, each in zip(self._reward.terms, of_terms)}
        fitness, length, *counts = of_ended.tolist()
        ends = {name: int(count) for name, count in zip(self._rows.ends, counts) if count}
        if REST in ends and REST not in self.job.description["ends"]:
            hint = f"name one of {list(self.job.description['ends'])} in `causes`"
            raise Fault(f"{ends[REST]} episodes ended early without a cause, expected one", hint)
        episodes = sum(ends.values())
        fitness, length = (each / episodes if episodes else None for each in (fitness, length))
        told = {"fitness": fitness, "episode_length": length, "episodes": episodes}
        told |= {"reward": of_total[0], "terms": terms, "ends": ends}
        self.job.event("curve", training=self.id, env_steps=self.env_steps, **told)
        self._sums, self._reported = (), self.env_steps


def save_arrays(path: Path, tensors: Mapping[str, Any]) -> None:
    """Write tensors by name as .npz, which needs no pickle."""
    import numpy

    arrays: dict[str, Any] = {name: each.detach().cpu().numpy() for name, each in tensors.items()}
    with path.open("wb") as file:
        numpy.savez(file, **arrays)


def load_arrays(path: Path) -> dict[str, Tensor]:
    """Tensors by name from a file of `save_arrays`. A pickle in it is refused."""
    import numpy

    with numpy.load(path, allow_pickle=False) as file:
        return {name: torch.from_numpy(file[name]) for name in file.files}


def load_state(path: Path) -> dict[str, Any]:
    """A state that `torch.save` wrote, on the CPU. It may hold tensors and plain values alone."""
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return state

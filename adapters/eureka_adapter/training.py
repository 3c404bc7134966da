"""One training as its loop sees it: the reward, the curve, the policies and states it leaves."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from eureka_adapter.faults import Fault
from eureka_adapter.rewards import Reward
from eureka_adapter.rows import REST, Rows, Step, Values

if TYPE_CHECKING:
    from eureka_adapter.job import Job

Save = Callable[[Path], None]


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
        self._saves: list[Path] = []
        self._sums: Tensor | None = None
        self._asked = 0

    @property
    def over(self) -> bool:
        """True once the training has had its env steps, or was cancelled."""
        return self.env_steps >= self._budget or self.cancelled

    @property
    def cancelled(self) -> bool:
        """True if no answer is wanted any more."""
        return (self.job.folder / "requests" / f"cancel-{self.id}").exists()

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
        rows = self._rows
        given = rows.take(step)
        result = self._reward(given)
        parts = result.double()
        ended = torch.stack([rows.fitness, rows.length, *rows.ends.values()]) * rows.done
        moments = (parts, parts.abs(), parts.square(), ended)
        sums = torch.cat([each.sum(dim=1) for each in moments])
        self._sums = sums if self._sums is None else self._sums + sums
        self.env_steps += len(rows.done)
        if self.env_steps - self._reported >= self.curve_every:
            self._report_curve()
        rows.finish(step.start)
        return result[0]

    def keep(
        self, save_policy: Save, save_state: Save | None = None, env_steps: int | None = None
    ) -> None:
        """Save what is due: policies at rungs, and states. `env_steps`: those of a state that does
        not contain the last ones, which are repeated when the training goes on from it."""
        while self._rungs and self._rungs[0] <= min(self.env_steps, self._budget - 1):
            self._save_rung(save_policy)
        if save_state is None or not self.wants_save():
            return
        at = self.env_steps if env_steps is None else env_steps
        path = self._written(save_state, f"state-{self.id}-{at}.pt")
        self.job.event("saved", training=self.id, env_steps=at, state=path.name)
        self._saved_at = time.monotonic()
        self._saves = [each for each in self._saves if each != path] + [path]
        if len(self._saves) > 2:  # the program may still be reading the last but one
            self._saves.pop(0).unlink()

    def wants_save(self) -> bool:
        """True when a state is due: the period has passed, or `save` was asked anew."""
        asked = self._asked
        with contextlib.suppress(OSError):
            asked = (self.job.folder / "requests" / "save").stat().st_mtime_ns
        is_new, self._asked = asked != self._asked, asked
        return is_new or time.monotonic() - self._saved_at >= self.job.fields["save_every_s"]

    def end(self, save_policy: Save) -> None:
        """Save the last policy. Nothing is said of a training that was cancelled."""
        if self.cancelled:
            return
        if self._sums is not None:
            self._report_curve()
        while self._rungs:
            self._save_rung(save_policy)
        path = self._written(save_policy, f"policy-{self.id}-end.npz")
        self._policies.append({"env_steps": self.env_steps, "policy": path.name})
        numbers = {"env_steps": self.env_steps, "policies": self._policies}
        self.job.event("trained", training=self.id, **numbers)

    def _save_rung(self, save_policy: Save) -> None:
        rung = self._rungs.pop(0)
        path = self._written(save_policy, f"policy-{self.id}-{rung}.npz")
        self._policies.append({"env_steps": rung, "policy": path.name})
        self.job.event("rung", training=self.id, **self._policies[-1])

    def _written(self, save: Save, name: str) -> Path:
        """File that is whole from the moment it has its name."""
        part = self.job.folder / f"part-{name}"
        save(part)
        return part.replace(self.job.folder / name)

    def _report_curve(self) -> None:
        assert self._sums is not None
        names = [None, *(self._reward.terms or ())]
        size, steps = len(names), self.env_steps - self._reported
        sums = self._sums.tolist()
        means, magnitudes, squares = (
            [each / steps for each in sums[at * size : (at + 1) * size]] for at in range(3)
        )
        fitness, length, *counts = sums[3 * size :]
        ends = {name: int(count) for name, count in zip(self._rows.ends, counts) if count}
        if REST in ends and REST not in self.job.description["ends"]:
            hint = f"name one of {list(self.job.description['ends'])} in `causes`"
            raise Fault(f"{ends[REST]} episodes ended early without a cause, expected one", hint)
        episodes = sum(ends.values())
        deviations = [max(each - mean**2, 0.0) ** 0.5 for each, mean in zip(squares, means)]
        moments = zip(names, means, magnitudes, deviations)
        terms = {
            name: dict(zip(("mean", "magnitude", "deviation"), each)) for name, *each in moments
        }
        del terms[None]  # of the total
        self.job.event(
            "curve",
            training=self.id,
            env_steps=self.env_steps,
            fitness=fitness / episodes if episodes else None,
            episode_length=length / episodes if episodes else None,
            episodes=episodes,
            reward=means[0],
            terms=terms,
            ends=ends,
        )
        self._sums, self._reported = None, self.env_steps


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

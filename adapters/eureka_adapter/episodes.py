"""Episodes apart from trainings: descriptions, evaluations, films, dry runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor

from eureka_adapter.faults import RewardFault, blame
from eureka_adapter.job import episode_seed
from eureka_adapter.rows import TIME_OUT, Rows, Values

if TYPE_CHECKING:
    from eureka_adapter.job import Job

Policy = Callable[[Any], Any]
"""Actions, without noise, for observations of all rows."""
LARGEST_FILE = 256 * 2**20


class Step(NamedTuple):
    """A control step of all rows: the state that each reached, before any reset."""

    observations: Any
    values: Values
    terminated: Any
    truncated: Any
    causes: Values | None = None
    actions: Any = None
    """Actions as they were applied, where they differ from those given."""


class BatchedEnv(Protocol):
    """Environments side by side. A row that has ended may do anything until the next reset. For
    films it also has `render(row) -> array`, height × width × 3 of 8 bits."""

    num_envs: int

    def reset(self, seeds: list[int]) -> tuple[Any, Values]:
        """Begin an episode in every row from its seed; observations and values of the states."""

    def step(self, actions: Any) -> Step:
        """Apply actions: a policy's, or a tensor of shape (num_envs, num_actions)."""


class Episode(NamedTuple):
    """An episode that was played, as in its event."""

    number: int
    length: int
    ended_by: str
    fitness: float
    start: dict[str, Tensor]
    values: dict[str, Tensor]
    fitness_steps: Tensor


def play(job: Job, env: BatchedEnv, load_policy: Callable[[Path], Policy]) -> None:
    """Do a job of any mode but `train`."""
    if job.mode == "describe":
        steps, numbers = job.fields["most_steps"], range(job.fields["episodes"])
        for by, act in (("zero", actions_of(job, env, False)), ("random", actions_of(job, env))):
            for episode in _played(job, env, act, numbers, 0, steps):
                job.event("episode", by=by, **episode._asdict())
    elif job.mode == "dry_run":
        _dry_run(job, env)
    for entry in job.fields.get("policies") or []:
        with blame("trainer"):
            policy = load_policy(job.folder / entry["policy"])
        (_film if job.mode == "film" else _evaluate)(job, env, policy, entry)


def actions_of(job: Job, env: BatchedEnv, random: bool = True) -> Policy:
    """Policy of random or zero actions. Shape: (num_envs, num_actions)."""
    shape = (env.num_envs, job.description["num_actions"])
    choices = torch.tensor(job.description["action_choices"])
    generator = torch.Generator().manual_seed(0)

    def act(_: Any) -> Tensor:
        if not random:
            return torch.zeros(shape, dtype=choices.dtype).to(job.device)
        drawn = torch.rand(shape, generator=generator)
        return (2 * drawn - 1 if not len(choices) else (drawn * choices).long()).to(job.device)

    return act


def _played(
    job: Job,
    env: BatchedEnv,
    act: Policy,
    numbers: Sequence[int],
    seed: int,
    most_steps: int | None = None,
    picture: Callable[[int, int, int], None] = lambda number, row, step: None,
) -> list[Episode]:
    """Episodes of these numbers. An episode's start follows from its number and `seed` alone."""
    episodes = []
    most = min(job.description["max_episode_length"], most_steps or math.inf)
    for first in range(0, len(numbers), env.num_envs):
        batch = list(numbers[first : first + env.num_envs])
        spare = [batch[-1]] * (env.num_envs - len(batch))
        observations, start = env.reset([episode_seed(seed, each) for each in batch + spare])
        begun = {name: torch.as_tensor(each).cpu().clone() for name, each in start.items()}
        rows, steps, ended = Rows(job, start), [], {}
        for row, number in enumerate(batch):
            picture(number, row, 0)
        while len(ended) < len(batch):
            actions = act(observations)
            step = env.step(actions)
            applied = actions if step.actions is None else step.actions
            rows.take(step.values, applied, step.terminated, step.truncated, step.causes)
            observations = step.observations
            columns = {**rows.values, "": rows.fitness_step}
            steps.append({name: each.cpu().clone() for name, each in columns.items()})
            masks = {name: mask.tolist() for name, mask in rows.ends.items()}
            fitness = rows.fitness.tolist()
            for row in range(len(batch)):
                causes = [name for name, mask in masks.items() if mask[row]]
                if row in ended:
                    continue
                if causes or len(steps) >= most:
                    ended[row] = len(steps), (causes or [TIME_OUT])[0], fitness[row]
                else:
                    picture(batch[row], row, len(steps))
            rows.finish()
        told = {name: torch.stack([each[name] for each in steps]) for name in steps[0]}
        for row, number in enumerate(batch):
            values = {name: each[: ended[row][0], row] for name, each in told.items()}
            began = {name: each[row] for name, each in begun.items()}
            episodes.append(Episode(number, *ended[row], began, values, values.pop("")))
    return episodes


def _evaluate(job: Job, env: BatchedEnv, policy: Policy, entry: Mapping[str, Any]) -> None:
    episodes = _played(job, env, policy, range(entry["episodes"]), entry["seed"])
    recorded = _recorded(entry["record"], episodes)
    for episode in episodes:
        fields = episode._asdict()
        if episode.number not in recorded:
            fields = {name: fields[name] for name in ("number", "length", "ended_by", "fitness")}
        job.event("episode", by=entry["id"], **fields)
    job.event("evaluated", policy=entry["id"])


def _recorded(record: Any, episodes: Sequence[Episode]) -> list[int]:
    """Numbers of the episodes to record."""
    if record != "extremes":
        return list(record or [])
    worst = min(episodes, key=lambda each: each.fitness)
    best = max(episodes, key=lambda each: each.fitness)
    return sorted({worst.number, best.number})


def _film(job: Job, env: BatchedEnv, policy: Policy, entry: Mapping[str, Any]) -> None:
    """Film the episodes to record; of `extremes` it first plays all to know them."""
    width, height = job.fields["size"]
    rate, seconds, dt = (
        job.fields["rate"],
        job.fields["most_seconds"],
        job.description["control_dt"],
    )
    most = min(int(rate * seconds), LARGEST_FILE // (3 * width * height))
    numbers, taken = entry["record"], {}
    if numbers == "extremes":
        all_of_them = range(entry["episodes"])
        numbers = _recorded(numbers, _played(job, env, policy, all_of_them, entry["seed"]))

    def picture(number: int, row: int, step: int) -> None:
        """Append the pictures that are due up to this step."""
        due = min(int(step * dt * rate + 1e-6) + 1, most)
        if due > taken.get(number, 0):
            pixels = _fitted(env.render(row), width, height)  # type: ignore[attr-defined]
            with (job.folder / f"pictures-{entry['id']}-{number}.rgb").open("ab") as file:
                file.write(pixels * (due - taken.get(number, 0)))
            taken[number] = due

    _played(job, env, policy, numbers, entry["seed"], math.ceil(seconds / dt), picture)
    for number in numbers:
        pictures = f"pictures-{entry['id']}-{number}.rgb"
        job.event("filmed", policy=entry["id"], number=number, pictures=pictures)


def _fitted(picture: Any, width: int, height: int) -> bytes:
    """Raw bytes of a picture, fitted into the size with black borders."""
    pixels = torch.as_tensor(picture.copy()).float().movedim(-1, 0)[None, :3]
    scale = min(width / pixels.shape[3], height / pixels.shape[2])
    if pixels.shape[2:] != (height, width):
        size = (max(round(pixels.shape[2] * scale), 1), max(round(pixels.shape[3] * scale), 1))
        pixels = torch.nn.functional.interpolate(pixels, size, mode="area")
    whole = torch.zeros(height, width, 3, dtype=torch.uint8)
    top, left = (height - pixels.shape[2]) // 2, (width - pixels.shape[3]) // 2
    fitted = pixels[0].movedim(0, -1).round().byte()
    whole[top : top + fitted.shape[0], left : left + fitted.shape[1]] = fitted
    return whole.numpy().tobytes()


def _dry_run(job: Job, env: BatchedEnv) -> None:
    """Random actions, with each reward on what they lead to."""
    for training in job.trainings:
        act, observations, step = actions_of(job, env), None, None
        try:
            for number in range(job.fields["most_steps"]):
                if number % job.description["max_episode_length"] == 0:
                    observations, start = env.reset(
                        [episode_seed(training.seed, number, row) for row in range(env.num_envs)]
                    )
                    training.begin(start)
                actions = act(observations)
                step = env.step(actions)
                applied = actions if step.actions is None else step.actions
                training.step(step.values, applied, step.terminated, step.truncated, step.causes)
            job.event("ran", training=training.id)
        except RewardFault as fault:
            job.report(fault)

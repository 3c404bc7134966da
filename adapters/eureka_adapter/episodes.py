"""Episodes apart from trainings: descriptions, evaluations, films, dry runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from eureka_adapter.faults import Fault, RewardFault, blame
from eureka_adapter.job import Job, episode_seed
from eureka_adapter.rows import TIME_OUT, Rows, Step, Values

Policy = Callable[[Any], Any]
"""Actions, without noise, for observations of all rows."""
Picture = Callable[[int, int, int], None]
"""Called with number, row and step of an episode that goes on."""


class BatchedEnv(Protocol):
    """Environments side by side. A row that has ended may do anything until the next reset. For
    films there is also `render(row)`, which gives an array, height × width × 3 of 8 bits."""

    num_envs: int

    def reset(self, seeds: list[int]) -> tuple[Any, Values]:
        """Begin an episode in every row from its seed; observations and values of the states."""

    def step(self, actions: Any) -> Step:
        """Apply actions: a policy's, or those of `sampled`."""


def play(job: Job, env: BatchedEnv, load_policy: Callable[[Path], Policy]) -> None:
    """Do a job of any mode but `train`."""
    if job.mode == "describe":
        for by in ("zero", "random"):
            act, numbers = sampled(job, env, by == "random"), range(job.fields["episodes"])
            for told, recorded in _played(job, env, act, numbers, 0, job.fields["most_steps"]):
                job.event("episode", by=by, **told, **recorded)
    elif job.mode == "dry_run":
        _dry_run(job, env)
    elif job.mode in ("evaluate", "film"):
        for entry in job.fields["policies"]:
            with blame("trainer"):
                policy = load_policy(job.folder / entry["policy"])
            (_film if job.mode == "film" else _evaluate)(job, env, policy, entry)
    else:
        raise Fault(f"`play` got mode {job.mode!r}, expected another", "train where it is `train`")


def sampled(job: Job, env: BatchedEnv, random: bool = True) -> Policy:
    """Policy of random or zero actions. Shape: (num_envs, num_actions); (num_envs,) for one choice
    alone."""
    choices = torch.tensor(job.description["action_choices"])
    count = job.description["num_actions"]
    shape = (env.num_envs,) if len(choices) == 1 else (env.num_envs, count)
    generator = torch.Generator().manual_seed(0)

    def act(_: Any) -> Tensor:
        uniform = torch.rand(shape, generator=generator)
        drawn = (uniform * choices).long() if len(choices) else 2 * uniform - 1
        return (drawn if random else torch.zeros_like(drawn)).to(job.device)

    return act


def _played(
    job: Job,
    env: BatchedEnv,
    act: Policy,
    numbers: Sequence[int],
    seed: int,
    most_steps: float = math.inf,
    picture: Picture = lambda number, row, step: None,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Episodes of these numbers: fields of the event, and further ones of an episode that is
    recorded. The start of each follows from its number and `seed` alone."""
    most = min(job.description["max_episode_length"], most_steps)
    for first in range(0, len(numbers), env.num_envs):
        batch = list(numbers[first : first + env.num_envs])
        # rows to spare play the last one too
        of_rows = batch + [batch[-1]] * (env.num_envs - len(batch))
        observations, start = env.reset([episode_seed(seed, number) for number in of_rows])
        start = {name: torch.as_tensor(each).cpu().clone() for name, each in start.items()}
        rows, steps, ended = Rows(job, start), [], {}
        while playing := {*range(len(batch))} - ended.keys():
            for row in playing:
                picture(batch[row], row, len(steps))
            step = env.step(act(observations))
            rows.take(step)
            observations, told = step.observations, {**rows.values, "": rows.fitness_step}
            steps.append({name: each.cpu().clone() for name, each in told.items()})
            done = rows.done.tolist()
            for row in [row for row in playing if done[row] or len(steps) >= most]:
                cause = next((name for name, mask in rows.ends.items() if mask[row]), TIME_OUT)
                ended[row] = (len(steps), cause, float(rows.fitness[row]))
        whole = {name: torch.stack([each[name] for each in steps]) for name in steps[0]}
        for row, (length, cause, fitness) in sorted(ended.items()):
            values = {name: each[:length, row] for name, each in whole.items()}
            begun = {name: each[row] for name, each in start.items()}
            told = {"number": batch[row], "length": length, "ended_by": cause, "fitness": fitness}
            yield told, {"start": begun, "fitness_steps": values.pop(""), "values": values}


def _evaluate(job: Job, env: BatchedEnv, policy: Policy, entry: Mapping[str, Any]) -> None:
    episodes = list(_played(job, env, policy, range(entry["episodes"]), entry["seed"]))
    to_record = entry["record"]
    if to_record == "extremes":  # of equal ones the first
        extremes = (each(episodes, key=lambda it: it[0]["fitness"]) for each in (min, max))
        to_record = [told["number"] for told, _ in extremes]
    for told, recorded in episodes:
        more = recorded if told["number"] in to_record else {}
        job.event("episode", by=entry["id"], **told, **more)
    job.event("evaluated", policy=entry["id"])


def _film(job: Job, env: BatchedEnv, policy: Policy, entry: Mapping[str, Any]) -> None:
    """Film the episodes to record: the start state, then every so many steps."""
    width, height = job.fields["size"]
    numbers = entry["record"]
    names = {number: f"pictures-{entry['id']}-{number}.rgb" for number in numbers}

    def picture(number: int, row: int, step: int) -> None:
        if step % job.fields["every"] == 0:
            with blame("environment"):
                pixels = _fitted(env.render(row), width, height)  # type: ignore[attr-defined]
            with (job.folder / names[number]).open("ab") as file:
                file.write(pixels)

    list(_played(job, env, policy, numbers, entry["seed"], job.fields["most_steps"], picture))
    for number, name in names.items():
        job.event("filmed", policy=entry["id"], number=number, pictures=name)


def _fitted(picture: Any, width: int, height: int) -> bytes:
    """Raw bytes of a picture, fitted into the size with black borders."""
    # a copy, since a picture may be a view that is upside down
    pixels = torch.as_tensor(picture.copy()).float().permute(2, 0, 1)[None, :3]
    rows, columns = pixels.shape[2:]
    scale = min(width / columns, height / rows)
    rows, columns = max(round(rows * scale), 1), max(round(columns * scale), 1)
    pixels = torch.nn.functional.interpolate(pixels, (rows, columns), mode="area")
    left, top = (width - columns) // 2, (height - rows) // 2
    borders = (left, width - columns - left, top, height - rows - top)
    whole = torch.nn.functional.pad(pixels, borders)[0].permute(1, 2, 0)
    return whole.round().byte().contiguous().numpy().tobytes()


def _dry_run(job: Job, env: BatchedEnv) -> None:
    """Call each reward on what random actions lead to."""
    for training in job.trainings:
        act, length = sampled(job, env), job.description["max_episode_length"]
        try:
            for number in range(job.fields["most_steps"]):
                if number % length == 0:
                    parts = (training.seed, number)
                    seeds = [episode_seed(*parts, row) for row in range(env.num_envs)]
                    training.begin(env.reset(seeds)[1])
                training.step(env.step(act(None)))
            job.event("ran", training=training.id)
        except RewardFault as fault:
            job.report(fault)

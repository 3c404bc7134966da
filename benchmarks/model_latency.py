"""Slots that stand idle while a language model is slow, and the memory that the driver takes.

    python benchmarks/model_latency.py [--latency S] [--training S] [--generations N] [--analyst]
    [--no-reviewer]

A search on cartpole against a stand-in for a model on loopback that takes 20 s for every reply,
with trainings of about 60 s: the env steps are chosen for this machine's speed. Four slots, eight
proposals a generation, a reviewer, and an analyst where asked for. Idle slots, which have nothing
to train, are counted four times a second, from the end of the first generation's designing until
the last candidate has a slot.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from _results import write_result
from _searches import Watch, search
from _stand_in import stand_in

from eureka_agent.archive.run_folder import Run
from eureka_agent.fleet.dispatcher import Dispatcher
from eureka_agent.journal.entries import BaseEntry, IterationStarted
from eureka_agent.journal.progress import TrainingProgress, TrainingQueued, TrainingResumed
from eureka_agent.ranking import ranked

SLOTS = 4
WORKERS = 2
SAMPLES = 8
PERIOD_S = 0.25


def reward(weight: float) -> str:
    """A reward of the pole's height, of a shape that depends on the weight."""
    return (
        f"SHARPNESS = {weight:.4f}\n\n\ndef compute_reward(pole_angle, cart_position):\n"
        "    upright = torch.exp(-SHARPNESS * pole_angle.square())\n"
        f"    centred = -{0.1 * weight:.5f} * cart_position.abs()\n"
        '    return upright + centred, {"upright": upright, "centred": centred}\n'
    )


@contextmanager
def counted_slots() -> Iterator[list[tuple[float, list[int]]]]:
    """Slots that have nothing to train, by worker, at points in time."""
    counts: list[tuple[float, list[int]]] = []
    dispatchers: list[Dispatcher] = []
    made = Dispatcher.__init__

    def remember(dispatcher: Dispatcher, *arguments: Any, **options: Any) -> None:
        made(dispatcher, *arguments, **options)
        dispatchers.append(dispatcher)

    ended = threading.Event()

    def count() -> None:
        while not ended.wait(PERIOD_S):
            if dispatchers and dispatchers[0]._workers:  # read from outside: nobody inside needs it
                free = [worker.free_slots for worker in dispatchers[0]._workers]
                counts.append((time.perf_counter(), free))

    with patch.object(Dispatcher, "__init__", remember):
        thread = threading.Thread(target=count, daemon=True)
        thread.start()
        try:
            yield counts
        finally:
            ended.set()
            thread.join()


class Moments(Watch):
    """Times of events. Points of curves are left out, since a driver keeps none either."""

    def __call__(self, event: BaseEntry) -> None:
        if isinstance(event, TrainingProgress | TrainingResumed):
            event = event.model_copy(update={"points": ()})
        super().__call__(event)


def steps_for(seconds: float) -> int:
    """Env steps of a training that takes about `seconds` beside the others, by the speed of a short
    search's trainings."""
    values = {
        "env": "cartpole",
        "task": "swingup",
        "iterations": 1,
        "samples": SLOTS,
        "workers": WORKERS,
        "slots": SLOTS // WORKERS,
    }

    def steps_per_second(run: Run, watch: Watch) -> float:
        outcomes = [attempt.outcome for attempt in run.archive.attempts()]
        return statistics.median(
            each.env_steps / each.seconds for each in outcomes if each is not None
        )

    return round(seconds * search({**values, "finalists": 0, "confirm": 0}, steps_per_second))


def main() -> int:
    """Print the share of idle slots."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--latency", type=float, default=20.0)
    parser.add_argument("--training", type=float, default=60.0)
    parser.add_argument("--generations", type=int, default=3)
    parser.add_argument("--analyst", action="store_true")
    parser.add_argument("--no-reviewer", action="store_true")
    arguments = parser.parse_args()
    env_steps = steps_for(arguments.training)
    print(f"{env_steps:,} env steps a training", flush=True)
    with stand_in(arguments.latency, reward) as server, counted_slots() as counts:
        values = {
            "env": "cartpole",
            "task": "swingup",
            "model": "openai/stand-in",
            "base_url": server.base_url,
            "analyst": "auto" if arguments.analyst else "off",
            "reviewer": "off" if arguments.no_reviewer else "auto",
            "iterations": arguments.generations,
            "samples": SAMPLES,
            "workers": WORKERS,
            "slots": SLOTS // WORKERS,
            "env_steps": env_steps,
            "finalists": 0,
        }
        figures = search(values, lambda run, watch: _figures(run, watch, counts), Moments())
    figures = {
        **figures,
        "latency_s": arguments.latency,
        "requests": len(server.requests),
        "env_steps": env_steps,
    }
    for name, value in figures.items():
        print(f"{name:32} {value}")
    name = (
        "model_latency"
        + ("_analyst" if arguments.analyst else "")
        + ("_no_reviewer" if arguments.no_reviewer else "")
    )
    write_result(name, figures)
    return 0


def _figures(run: Run, watch: Watch, counts: list[tuple[float, list[int]]]) -> dict[str, Any]:
    began = watch.began
    first = next(
        at
        for at, event in watch.events
        if isinstance(event, IterationStarted) and event.iteration == 1
    )
    last_queued = max(
        at
        for at, event in watch.events
        if isinstance(event, TrainingQueued) and event.training == "search"
    )
    queued = {
        event.job: at
        for at, event in watch.events
        if isinstance(event, TrainingQueued) and event.training == "search"
    }
    started = {
        event.job: at
        for at, event in reversed(watch.events)
        if isinstance(event, TrainingProgress) and event.job in queued
    }
    until = max(started.values(), default=last_queued)
    inside = [free for at, free in counts if first <= at - began <= until]
    trained = ranked(run.archive.attempts())  # those that broke off have no time of their own
    return {
        "idle_share": round(statistics.fmean(sum(free) for free in inside) / SLOTS, 4),
        "idle_share_of_each_worker": [
            round(statistics.fmean(free) / (SLOTS // WORKERS), 4)
            for free in zip(*inside, strict=True)
        ],
        "watched_s": round(until - first, 1),
        "median_training_s": round(
            statistics.median(each.outcome.seconds for each in trained if each.outcome is not None),
            1,
        ),
        "driver_peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "whole_s": round(watch.events[-1][0], 1),
    }


if __name__ == "__main__":
    sys.exit(main())

"""Wall time of whole searches by part: a table of phases, a table of what the training workers did,
and on request a flame graph.

    python benchmarks/where_time_goes.py [--quick] [--seed N] [--flame-graph FILE] [TASK …]

A default search (`eureka search`, offline designer, baselines and finals included) on cartpole and
hopper. Designer, critic, evaluator, pool and workers are watched from outside, by taking the time
of their public methods; several are at work at once, so every moment counts for the first of these
that is under way: training (of candidates, then repeats for confirmation, finals, baselines),
evaluation, the critic, design, the start of workers. What is left is "start" before the run begins,
"end" after the last training, and "driver" between. A training waits for its worker to start: until
one has, the time counts as the start of workers.

The second table is of the workers' own timers, as parts of their lives from ready to closed:
physics with the environment around it, update, policy, reward, rest, and "idle", in which they had
nothing to train or talked to the driver. Below it is the processor time that driver and children
took. `--flame-graph FILE` has py-spy (`pip install py-spy`) sample what runs in driver and workers
of the first task, and writes an SVG.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from _common import subject
from _results import write_result
from _searches import Watch, search

from eureka_agent.archive.run_folder import Run
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.offline.designer import OfflineDesigner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.fleet import Trainings
from eureka_agent.fleet.training_worker import TrainingWorker
from eureka_agent.journal.entries import RunStarted
from eureka_agent.journal.progress import TrainingEnded, TrainingQueued

TRAINING = {
    "search": "training",
    "repeat": "confirmation",
    "final": "finals",
    "human": "baselines",
    "sparse": "baselines",
}
ORDER = (*dict.fromkeys(TRAINING.values()), "evaluation", "critic", "design", "start of workers")
"""Precedence: of parts under way at one moment, the first one gets it."""
WATCHED = (
    (Evaluator, "evaluate", "evaluation"),
    (Critic, "judge", "critic"),
    (OfflineDesigner, "propose", "design"),
    (OfflineDesigner, "revise", "design"),
)
QUICK = {"iterations": 1, "samples": 2, "env_steps": 8_000, "finalists": 1, "final_seeds": 1}


@dataclass(frozen=True)
class Interval:
    """Something that was under way, in seconds since the search was asked for."""

    what: str
    began: float
    ended: float


class Stopwatch:
    """Takes the time of the search's parts while it is installed."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.intervals: list[Interval] = []
        self.lives: dict[TrainingWorker, list[float]] = {}
        """Times at which each training worker was ready and was closed."""
        self.timers: dict[TrainingWorker, dict[str, float]] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch every search that begins within."""
        with ExitStack() as stack:
            for owner, name, what in WATCHED:
                stack.enter_context(
                    patch.object(owner, name, self._timed(getattr(owner, name), what))
                )
            stack.enter_context(patch.object(Trainings, "train", self._train(Trainings.train)))
            stack.enter_context(
                patch.object(TrainingWorker, "start", self._start(TrainingWorker.start))
            )
            stack.enter_context(
                patch.object(TrainingWorker, "close", self._close(TrainingWorker.close))
            )
            yield

    def _timed(
        self, method: Callable[..., Awaitable[Any]], what: str
    ) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def timed(*arguments: Any, **keywords: Any) -> Any:
            began = self._watch.seconds()
            try:
                return await method(*arguments, **keywords)
            finally:
                self.intervals.append(Interval(what, began, self._watch.seconds()))

        return timed

    def _train(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def train(pool: Trainings, job: str, *arguments: Any, **keywords: Any) -> Any:
            return await self._timed(method, f"job {job}")(pool, job, *arguments, **keywords)

        return train

    def _start(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def start(worker: TrainingWorker) -> None:
            await self._timed(method, "start of workers")(worker)
            self.lives[worker] = [self._watch.seconds()]

        return start

    def _close(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def close(worker: TrainingWorker) -> None:
            if worker in self.lives and len(self.lives[worker]) == 1:
                self.lives[worker].append(self._watch.seconds())
                self.timers[worker] = dict(worker._timers)
            await method(worker)

        return close

    def phases(self) -> dict[str, float]:
        """Seconds of wall time, each moment counted once."""
        events = self._watch.events
        total = self._watch.seconds()
        kinds = {
            f"job {event.job}": event.training
            for _, event in events
            if isinstance(event, TrainingQueued)
        }
        begins = next(seconds for seconds, event in events if isinstance(event, RunStarted))
        last = max(
            (seconds for seconds, event in events if isinstance(event, TrainingEnded)),
            default=total,
        )
        ready = min((life[0] for life in self.lives.values()), default=total)
        found = [
            # before there is a worker a training only waits
            (
                Interval(TRAINING[kinds[each.what]], max(each.began, ready), max(each.ended, ready))
                if each.what in kinds
                else each
            )
            for each in self.intervals
        ]
        edges = sorted(
            {
                0.0,
                begins,
                last,
                total,
                *(edge for each in found for edge in (each.began, each.ended)),
            }
        )
        seconds = dict.fromkeys((*ORDER, "start", "driver", "end"), 0.0)
        for began, ended in itertools.pairwise(edges):
            under_way = {each.what for each in found if each.began <= began and each.ended >= ended}
            remainder = "start" if ended <= begins else "end" if began >= last else "driver"
            seconds[next((what for what in ORDER if what in under_way), remainder)] += ended - began
        return seconds

    def workers(self) -> dict[str, float]:
        """Parts of the training workers' lives."""
        lives = sum(ended - began for began, ended in self.lives.values())
        parts: dict[str, float] = {}
        for timers in self.timers.values():
            for name, seconds in timers.items():
                parts[name] = parts.get(name, 0.0) + seconds / lives
        return {**parts, "idle": 1.0 - sum(parts.values())}


def measure(values: dict[str, Any]) -> dict[str, Any]:
    """One search in figures."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    driver, watch = time.process_time(), Watch()
    stopwatch = Stopwatch(watch)
    with stopwatch.installed():
        search(values, lambda run, watch: _look(run), watch)
        phases = stopwatch.phases()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": sum(phases.values()),
        "phases_s": phases,
        "training_workers": len(stopwatch.lives),
        "worker_shares": stopwatch.workers(),
        "driver_processor_s": time.process_time() - driver,
        "children_processor_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def _look(run: Run) -> None:
    """Read nothing of the run itself."""


def show(name: str, found: dict[str, Any]) -> None:
    """Print a search."""
    total = found["seconds"]
    print(f"\n{name}: a search of {total:.1f} s")
    for phase, seconds in sorted(found["phases_s"].items(), key=lambda each: -each[1]):
        if seconds > 0.0:
            print(f"  {phase:18} {seconds:8.2f} s {seconds / total:7.1%}")
    parts = ", ".join(f"{part} {share:.1%}" for part, share in found["worker_shares"].items())
    print(f"  its {found['training_workers']} training workers: {parts}")
    print(
        f"  processor time: driver {found['driver_processor_s']:.1f} s, children"
        f" {found['children_processor_s']:.1f} s",
        flush=True,
    )


def main() -> dict[str, Any]:
    """Search, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=["cartpole", "hopper"], metavar="TASK")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--flame-graph", metavar="FILE", help="have py-spy write an SVG of the first task's search"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="searches of two short trainings: shows only that it runs",
    )
    arguments = parser.parse_args()
    if arguments.flame_graph:
        again = [sys.executable, __file__, arguments.tasks[0], "--seed", str(arguments.seed)]
        again += ["--quick"] if arguments.quick else []
        record = [
            "py-spy",
            "record",
            "--subprocesses",
            "--rate",
            "50",
            "--output",
            arguments.flame_graph,
        ]
        try:
            subprocess.run([*record, "--", *again], check=True)
        except FileNotFoundError:
            raise SystemExit(
                "error: --flame-graph needs py-spy, which is not on the PATH: pip install py-spy"
            ) from None
        return {}
    figures = {}
    for reference in arguments.tasks:
        chosen = subject(reference)
        environment, _, task = chosen.name.partition("/")
        values = {
            "env": environment,
            "task": task,
            "seed": arguments.seed,
            **(QUICK if arguments.quick else {}),
        }
        figures[chosen.name] = measure(values)
        show(chosen.name, figures[chosen.name])
    if not arguments.quick:
        write_result("where_time_goes", {"seed": arguments.seed, "searches": figures})
    return figures


if __name__ == "__main__":
    main()

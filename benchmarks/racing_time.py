"""Wall time to the same best fitness with racing against without: real searches, same seeds, on
cartpole, hopper and ant.

    python benchmarks/racing_time.py [TASK …] [--quick] [--seeds N …] [--iterations N] [--samples N]
    [--final-seeds N]

Each search is what `eureka search --finalists 1` does, with the baselines, which share the workers
and whose noise is racing's bar; its time ends where the final training begins. The two arms of a
seed follow each other, in turns with and without racing first. From every search's events follows
who would have won had it ended there, and with what fitness (mean over that attempt's trainings so
far). Printed are, for each task:

- the wall time to the end, with racing over without;
- the wall time until the arm's best first reached the smaller of both arms' final bests ("first"),
  and until it had reached it to stay ("to stay": a second training can take back what a lucky first
  one gave). Target: half, or less;
- the difference of the winners' fitness, racing minus without, with its 95 % interval (Student's t,
  paired by seed). Zero within it: equal within noise.

Each winner is trained again from `--final-seeds` fresh seeds (5), outside the time that counts, and
those means are compared: the fitness by which a winner was chosen flatters it, in both arms. Ratios
are geometric means over seeds. Every pair is written to results/racing_time.json at once, beside
those that are there from the same settings: so this can be run in parts. Seeds are 1, 2, 3 unless
others are given.
"""

from __future__ import annotations

import argparse
import json
import statistics
from datetime import UTC, datetime
from typing import Any

from _common import subject
from _intervals import interval
from _results import RESULTS, commit, write_result
from _searches import Watch, search

from eureka_agent.archive.run_folder import Run
from eureka_agent.journal.entries import FinalStarted
from eureka_agent.journal.state import Recorded, changed
from eureka_agent.ranking import ranked
from eureka_agent.records import Attempt, Stage
from eureka_agent.search.summary import best_attempt, run_report

NAME = "racing_time"
TASKS = ("cartpole/swingup", "hopper/run", "ant/run")
SEEDS = (1, 2, 3)
QUICK = {"iterations": 1, "samples": 3, "env_steps": 6_000}


def winners(watch: Watch) -> list[tuple[float, float]]:
    """Whenever it changed: wall seconds, and the fitness of who would have won had the search ended
    there."""
    attempts: dict[str, Attempt] = {}
    found: list[tuple[float, float]] = []
    for seconds, event in watch.events:
        if not event.of_attempt:
            continue
        attempts[event.of_attempt] = changed(attempts, Recorded(0, "", seconds, event))
        best = next(iter(ranked(list(attempts.values()))), None)
        if (
            best is not None
            and best.fitness is not None
            and (not found or found[-1][1] != best.fitness)
        ):
            found.append((seconds, best.fitness))
    return found


def read(run: Run, watch: Watch) -> dict[str, Any]:
    """One search in figures."""
    ended = next(
        (seconds for seconds, event in watch.events if isinstance(event, FinalStarted)),
        watch.seconds(),
    )
    report, best = run_report(run), best_attempt(run)
    scores = [score.mean for score in report.scores if best is not None and score.name == best.id]
    return {
        "seconds": ended,
        "winners": winners(watch),
        "stopped": sum(attempt.stage is Stage.STOPPED for attempt in report.attempts),
        "candidates": sum(attempt.stage is not Stage.REJECTED for attempt in report.attempts),
        "env_steps": report.cost.env_steps,
        "final_fitness": scores[0] if scores else None,
    }


def reached(found: list[tuple[float, float]], fitness: float, *, to_stay: bool) -> float:
    """Wall seconds until the winner had this fitness, for the first time or for good."""
    above = [(seconds, value >= fitness) for seconds, value in found]
    if not to_stay:
        return next(seconds for seconds, enough in above if enough)
    last_below = max((place for place, (_, enough) in enumerate(above) if not enough), default=-1)
    return above[last_below + 1][0]


def compare(pair: dict[str, Any]) -> dict[str, float]:
    """One seed's two searches: ratios of times, difference of fitness."""
    racing, without = pair["racing"], pair["without"]
    last = {arm: pair[arm]["winners"][-1][1] for arm in ("racing", "without")}
    same = min(last.values())
    finals = [racing["final_fitness"], without["final_fitness"]]
    fitness = finals if None not in finals else [last["racing"], last["without"]]
    return {
        "end": racing["seconds"] / without["seconds"],
        **{
            name: (
                reached(racing["winners"], same, to_stay=stay)
                / reached(without["winners"], same, to_stay=stay)
            )
            for name, stay in (("first", False), ("to_stay", True))
        },
        "difference": fitness[0] - fitness[1],
        "fitness": fitness[0],
        "fitness_without": fitness[1],
    }


def summarize(pairs: dict[str, Any]) -> dict[str, Any]:
    """A task's seeds together."""
    compared = [compare(pair) for pair in pairs.values()]
    ratios = {
        name: statistics.geometric_mean(each[name] for each in compared)
        for name in ("end", "first", "to_stay")
    }
    differences = [each["difference"] for each in compared]
    found: dict[str, Any] = {
        **ratios,
        "seeds": len(compared),
        "difference": statistics.fmean(differences),
    }
    if len(differences) > 1:
        found["difference_half_width"] = interval(differences)[1]
    return found


def show(name: str, pairs: dict[str, Any], summary: dict[str, Any]) -> None:
    """Print a task."""
    print(f"\n{name}: fitness of the winner and wall seconds, with racing and without")
    for seed, pair in pairs.items():
        compared = compare(pair)
        print(
            f"  seed {seed}: {compared['fitness']:.4g} in {pair['racing']['seconds']:.0f} s"
            f" ({pair['racing']['stopped']} of {pair['racing']['candidates']} stopped),"
            f" {compared['fitness_without']:.4g} in {pair['without']['seconds']:.0f} s; ratio to"
            f" the end {compared['end']:.2f}, to the same best {compared['first']:.2f} first,"
            f" {compared['to_stay']:.2f} to stay"
        )
    half = summary.get("difference_half_width")
    noise = "one seed says nothing of noise" if half is None else f"95 % interval ± {half:.3g}"
    print(
        f"  all: ratio to the end {summary['end']:.2f}, to the same best {summary['first']:.2f}"
        f" first, {summary['to_stay']:.2f} to stay (target: 0.5); fitness"
        f" {summary['difference']:+.3g} with racing ({noise})",
        flush=True,
    )


def stored(settings: dict[str, Any]) -> dict[str, Any]:
    """Pairs of earlier runs with the same settings, by task and seed."""
    path = RESULTS / f"{NAME}.json"
    if not path.is_file():
        return {}
    record = json.loads(path.read_text())
    return dict(record["pairs"]) if record.get("settings") == settings else {}


def main() -> dict[str, Any]:
    """Search, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=list(TASKS), metavar="TASK")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS), metavar="N")
    parser.add_argument("--iterations", type=int, default=2, metavar="N")
    parser.add_argument("--samples", type=int, default=8, metavar="N")
    parser.add_argument("--final-seeds", type=int, default=5, metavar="N")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a search of three short trainings: shows only that it runs",
    )
    arguments = parser.parse_args()
    settings = {
        "iterations": arguments.iterations,
        "samples": arguments.samples,
        "final_seeds": arguments.final_seeds,
        "baselines": True,
    }
    pairs = {} if arguments.quick else stored(settings)
    figures: dict[str, Any] = {}
    for reference in arguments.tasks:
        chosen = subject(reference)
        environment, _, task = chosen.name.partition("/")
        given = {
            "env": environment,
            "task": task,
            "iterations": arguments.iterations,
            "samples": arguments.samples,
        }
        given |= {"finalists": 1, "final_seeds": arguments.final_seeds}
        if arguments.quick:
            given |= QUICK
        mine: dict[str, Any] = {} if arguments.quick else pairs.setdefault(chosen.name, {})
        for number, seed in enumerate(arguments.seeds[:1] if arguments.quick else arguments.seeds):
            order = ("racing", "without") if number % 2 == 0 else ("without", "racing")
            pair = {
                arm: search({**given, "seed": seed, "racing": arm == "racing"}, read)
                for arm in order
            }
            mine[str(seed)] = {
                **pair,
                "date": datetime.now(UTC).date().isoformat(),
                "commit": commit(),
            }
            figures = {
                name: summarize(each)
                for name, each in (pairs or {chosen.name: mine}).items()
                if each
            }
            if not arguments.quick:
                write_result(NAME, {"settings": settings, "tasks": figures, "pairs": pairs})
        show(chosen.name, mine, figures[chosen.name])
    return figures


if __name__ == "__main__":
    main()

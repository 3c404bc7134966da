"""What racing saves and what it loses: generations of the offline designer trained to the end, then
raced on paper.

    python benchmarks/racing.py [TASK …] [--searches N] [--seed S] [--second] [--draws N] [--size N]
    [--repeats N] [--keep FOLDER] [--run FOLDER]

The first generations of some searches (`--second`: the ones after them) are trained once to the end
of each task's budget: about 3 minutes a task on one core, ant 19. Generations (of eight) are then
drawn from them at random, and each is raced over the recorded curves under several policies: where
the rungs are, by how much one must be behind (in robust deviations at the first rung, n times that
at the n-th), and by what candidates are compared: the curve's fitness, with the noise of
exploration, the same smoothed or with its trend, or a score without noise, of the policy at the
rung or of the one kept so far. With `of last 3` the policies of the last three checkpoints before
the end are scored too, and the best of these, of those scored at rungs and of the one kept by the
curve is the training's. The processor time of all these scores, measured, counts.

Saved samples are no gain by themselves: half of the candidates take half of the time too. So `time`
is the time that a policy takes over that of as many candidates trained to the end as have, on
average, the same best fitness (`as good as`), ± its standard error by leaving out a sixth of the
trainings after the other; `alone` the same where a generation has a worker for itself, whose
throughput falls as candidates are stopped (measured here); `to level` the time until some candidate
reaches the mean best of two generations trained to the end, over that without racing.

With `--repeats N` the first N rewards are trained from two further seeds: how much of the fitness
is the reward's, and what the winner of a race, which is often as much lucky as good, is worth when
it is trained again. `--run` takes the candidates of a finished search (`--no-racing`) in place of
trainings.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _common import filled_trainer, start, subject
from _race_curves import (
    GENERATION,
    Trained,
    finished_run,
    race_bench,
    repeated_trainings,
    searched_trainings,
)
from _races import (
    SCORED,
    By,
    Policy,
    Seeds,
    compare,
    jackknife_error,
    leader_lost,
    rank_correlations,
    times_without,
)
from _results import write_result

from eureka_agent.search.racing import MARGIN
from eureka_agent.settings import SearchSettings, TrainingSettings
from eureka_agent.simulation.catalogue import list_environments
from eureka_agent.simulation.loading import load_environment

MEMBERS = (1, 2, 4, 8)
"""Members of a population whose throughput is measured."""
READINGS: tuple[By, ...] = ("curve", *SCORED)
"""What candidates are compared by, in the tables of correlations and of leaders."""
CHOSEN = 3
"""Checkpoints before the end whose policies are scored where a training's policy is chosen by
that."""
LEADERS_FROM = 4
"""Place of the first checkpoint at which leaders are looked at."""

DEFAULT = Policy(SearchSettings().rungs, MARGIN)
EARLY_AND_LATE = ((0.1,), (0.4,), (0.6,), (0.7,), (0.8,), (0.1, 0.6), (0.4, 0.7), (0.6, 0.8))
POLICIES = (
    DEFAULT,
    *(Policy((0.5,), math.inf, chosen=chosen) for chosen in (1, 2, 3, 5, 8)),  # no racing at all
    *(
        Policy(shares, margin, chosen=chosen)
        for chosen in (0, CHOSEN)
        for shares in (*EARLY_AND_LATE, (0.2,), (0.3,), (0.1, 0.3), (0.2, 0.4), (0.1, 0.2, 0.4))
        for margin in ((0.5,) if chosen else (0.0, 0.5, 1.0))
        if (shares, margin, chosen) != (DEFAULT.shares, DEFAULT.margin, 0)
    ),
    *(Policy((0.1,), 0.5, ahead=ahead) for ahead in (1.0, 2.0)),
    *(
        Policy(shares, 0.5, by)
        for shares in ((0.2, 0.4), (0.4, 0.7))
        for by in ("smoothed", "trend")
    ),
    *(
        Policy(shares, margin, by, chosen=chosen)
        for chosen, by in ((0, "kept"), (0, "with curve"), (CHOSEN, "kept"), (CHOSEN, "best"))
        for shares in EARLY_AND_LATE
        for margin in (0.0, 0.5, 1.0)
    ),
)


def throughputs(reference: str, rounds: int = 3, iterations: int = 4) -> dict[int, float]:
    """Env steps in a second of the processor, by the number of members that train side by side;
    arms interleaved."""
    task = subject(reference)
    settings = task.settings()
    trainers = {members: filled_trainer(task, settings, range(members)) for members in MEMBERS}
    seconds = dict.fromkeys(MEMBERS, 0.0)
    for round_ in range(rounds + 1):
        for members, trainer in trainers.items():
            began = time.process_time()
            for _ in range(iterations):
                trainer.iterate()
            if round_:  # the first one warms up
                seconds[members] += time.process_time() - began
    steps = rounds * iterations * settings.horizon * settings.num_envs
    return {members: members * steps / seconds[members] for members in MEMBERS}


def race(
    reference: str,
    trained: Sequence[Trained],
    settings: TrainingSettings,
    policies: Sequence[Policy],
    draws: int,
    seed: int,
    size: int,
) -> dict[str, Any]:
    """The policies' figures on one task, printed as they come."""
    speeds = throughputs(reference)
    readings = [(by, 0) for by in READINGS if trained_scored(trained) or by not in SCORED]
    readings += [(by, CHOSEN) for by in READINGS if trained_scored(trained)]
    correlations = {reading: rank_correlations(trained, *reading) for reading in readings}
    leaders = {
        (by, chosen): [
            leader_lost(trained, by, place, draws, seed, size, chosen)
            for place in range(LEADERS_FROM, len(correlations[by, chosen]))
        ]
        for by, chosen in readings
    }
    scores = [each.fitness for each in trained]
    print(
        f"{reference}: {len(trained)} trainings, fitness {statistics.fmean(scores):.4g} ±"
        f" {statistics.stdev(scores):.3g}"
    )
    if trained_scored(trained):
        costs = zip(*([score.cost for score in each.scores] for each in trained), strict=True)
        shown = " ".join(f"{statistics.fmean(cost):.3f}" for cost in costs)
        print(f"  cost of a score at each checkpoint, in trainings: {shown}")
    for by, chosen in readings:
        lost = ", ".join(f"{mean:.3g} ({share:.0%})" for mean, share in leaders[by, chosen])
        print(
            f"  {by:10} rank correlation with the final"
            f" fitness{f', of last {chosen}' if chosen else ''}"
            f" {' '.join(f'{each:.2f}' for each in correlations[by, chosen])}; its leader lacks,"
            f" from checkpoint {LEADERS_FROM + 1} on: {lost}"
        )
    print(
        f"  {'rungs':16} {'margin':6} {'by':18} saved scoring  winner stopped  fitness lost  as"
        " good as         time      over default  alone  to level",
        flush=True,
    )
    rows = {}
    default = times_without(trained, settings, DEFAULT, draws // 4, seed, size)
    for policy in policies:
        row = rows[str(policy)] = compare(trained, settings, policy, draws, seed, speeds, size)
        times = times_without(trained, settings, policy, draws // 4, seed, size)
        row["time_error"] = jackknife_error(times)
        row["time_over_default"] = row["time"] - rows[str(DEFAULT)]["time"]
        row["time_over_default_error"] = jackknife_error(
            [own - other for own, other in zip(times, default, strict=True)]
        )
        print(
            f"  {policy!s:42} {row['samples_saved']:5.0%} {row['scoring']:7.1%}"
            f" {row['winner_stopped']:15.0%} {row['fitness_lost']:13.3g} {row['as_good_as']:11.1f}"
            f" {row['time']:5.2f} ± {row['time_error']:4.2f} {row['time_over_default']:8.2f} ±"
            f" {row['time_over_default_error']:4.2f} {row['time_alone']:6.2f}"
            f" {row['time_to_level']:9.2f}",
            flush=True,
        )
    return {
        "trainings": len(trained),
        "fitness_mean": statistics.fmean(scores),
        "fitness_deviation": statistics.stdev(scores),
        "rank_correlations": {_name(reading): values for reading, values in correlations.items()},
        "leader_lost": {
            _name(reading): [mean for mean, _ in lost] for reading, lost in leaders.items()
        },
        "steps_per_processor_second": speeds,
        "default": rows[str(DEFAULT)],
        "times": {policy: row["time"] for policy, row in rows.items()},
    }


def _name(reading: tuple[By, int]) -> str:
    by, chosen = reading
    return f"{by}, of last {chosen}" if chosen else by


def race_again(
    first: Sequence[Trained],
    again: Sequence[Trained],
    settings: TrainingSettings,
    policies: Sequence[Policy],
    draws: int,
    seed: int,
) -> dict[str, Any]:
    """What the winners of races are worth when they are trained again."""
    groups: dict[str, tuple[Trained, ...]] = {each.reward: (each,) for each in first}
    for each in again:
        groups[each.reward] = (*groups[each.reward], each)
    most = max(len(group) for group in groups.values())
    seeds = Seeds({name: group for name, group in groups.items() if len(group) == most})
    unraced = {
        size: seeds.winner(settings, None, draws, seed, size) for size in (1, 2, 4, 6, GENERATION)
    }
    print(
        f"  {len(seeds.trainings)} rewards from {most} seeds each, {seeds.reward_share():.0%} of"
        f" the variance the rewards'. Trained again, the best of {', '.join(map(str, unraced))}"
        f" trained to the end has {', '.join(f'{value:.4g}' for value in unraced.values())};"
        " raced:",
        flush=True,
    )
    worth = {}
    for policy in policies:
        worth[str(policy)] = seeds.winner(settings, policy, draws, seed)
        print(f"  {policy!s:42} {worth[str(policy)]:.4g}", flush=True)
    return {"reward_share": seeds.reward_share(), "unraced": unraced, "raced": worth}


def chosen_elsewhere(figures: dict[str, dict[str, Any]]) -> dict[str, dict[str, float | str]]:
    """For every task the policy that takes the least time on the others, and what it takes here; by
    whether the training's policy is chosen by its score."""
    times = {reference: task["times"] for reference, task in figures.items()}
    common = [policy for policy in POLICIES if all(str(policy) in task for task in times.values())]
    chosen: dict[str, dict[str, float | str]] = {}
    for reference, own in times.items():
        others = [task for other, task in times.items() if other != reference]
        for by_score in (False, True):
            names = [str(policy) for policy in common if bool(policy.chosen) == by_score]
            if not others or not names:
                continue
            best = min(names, key=lambda policy: statistics.fmean(task[policy] for task in others))
            key = f"{reference}{', chosen by score' if by_score else ''}"
            chosen[key] = {"policy": best, "time": own[best], "time_of_default": own[str(DEFAULT)]}
            print(
                f"{key}: best on the other tasks is {best}: {own[best]:.2f} (default"
                f" {own[str(DEFAULT)]:.2f})"
            )
    return chosen


def main() -> None:
    """Train, race, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK")
    parser.add_argument(
        "--searches", type=int, default=4, help="generations of eight trained for each task"
    )
    parser.add_argument("--seed", type=int, default=11, help="of the first search")
    parser.add_argument(
        "--second", action="store_true", help="race the searches' second generations"
    )
    parser.add_argument("--draws", type=int, default=2000, help="generations drawn from them")
    parser.add_argument(
        "--size", type=int, default=GENERATION, help="candidates of such a generation"
    )
    parser.add_argument(
        "--repeats", type=int, default=0, help="rewards trained from further seeds, at least 8"
    )
    parser.add_argument(
        "--keep", type=Path, help="folder of trainings: read where they are there, else written"
    )
    parser.add_argument(
        "--run",
        type=Path,
        action="append",
        default=[],
        help="folder of a finished search to race too",
    )
    arguments = parser.parse_args()
    start()
    finished = dict(finished_run(folder) for folder in arguments.run)
    known = [
        f"{entry.name}/{task}"
        for entry in list_environments()
        for task in load_environment(entry.name).tasks
    ]
    searches = range(arguments.seed, arguments.seed + arguments.searches)
    draws, seed = arguments.draws, arguments.seed
    figures = {}
    for reference in dict.fromkeys([*(arguments.tasks or ([] if finished else known)), *finished]):
        settings = race_bench(reference).settings
        trained = finished.get(reference) or searched_trainings(
            reference, searches, arguments.second, arguments.keep
        )
        figures[reference] = race(
            reference, trained, settings, policies_for(trained), draws, seed, arguments.size
        )
        if arguments.repeats and reference not in finished:
            first = trained[: arguments.repeats]
            again = repeated_trainings(reference, first, arguments.keep)
            policies = [policy for policy in policies_for([*first, *again]) if not policy.chosen]
            figures[reference]["trained_again"] = race_again(
                first, again, settings, policies, draws, seed
            )
    name = "racing_second" if arguments.second else "racing"
    write_result(name, {"tasks": figures, "chosen_elsewhere": chosen_elsewhere(figures)})


def policies_for(trained: Sequence[Trained]) -> list[Policy]:
    """Those that these trainings can be raced by."""
    return [
        policy
        for policy in POLICIES
        if not (policy.scores or policy.chosen) or trained_scored(trained)
    ]


def trained_scored(trained: Sequence[Trained]) -> bool:
    """Whether their policies were scored on the way."""
    return all(each.scores for each in trained)


if __name__ == "__main__":
    main()

"""Savings and losses of the critic's novelty and trajectory gate in finished searches, replayed
attempt by attempt.

    python benchmarks/gate.py [RUN …]

A RUN is the folder of a finished search; by default, all in the runs folder. Nothing is written to
it, except what opening its archive writes. Every trained attempt is judged again, with what was
known before it. Saved: trainings of rewards that would have been sent back. Lost: those of them
with a fitness above their generation's median. The information that a rejected reward's
trajectories gave later ones is left in.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.archive.run_folder import Run, list_runs, open_run
from eureka_agent.critic.critic import Critic
from eureka_agent.critic.gate import LEAST_PAIRS, ordering
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.problem import Problem
from eureka_agent.records import Attempt
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.search.memory import RunMemory

STEPS = {"novelty": ("N501", "N502"), "gate": ("G601",)}


@dataclass
class Tally:
    """Counts of a run's replay."""

    trained: int = 0
    saved: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    ordered: list[tuple[float, bool]] = field(default_factory=list)
    """For each attempt with enough pairs: the part of them ordered right, and True if the reward
    was good."""
    seconds: float = 0.0


async def replay(run: Run) -> Tally:
    """Judge every trained attempt again, with novelty alone and with the gate alone."""
    tally = Tally()
    attempts = [attempt for attempt in run.archive.attempts() if attempt.outcome is not None]
    medians = {each.iteration: _median(attempts, each.iteration) for each in attempts}
    memory = RunMemory(run, in_order=True)
    with tempfile.TemporaryDirectory(prefix="eureka-") as scratch:
        runner = DryRunner(
            choose_wall("auto"), Problem(run.settings.env, run.description.task), Path(scratch)
        )
        try:
            await runner.start()
            critics = {
                "novelty": Critic(run.description, runner, gate=False),
                "gate": Critic(run.description, runner, novelty=False),
            }
            plain = Critic(run.description, runner)
            for attempt in attempts:
                good = attempt.fitness is not None and attempt.fitness > medians[attempt.iteration]
                known = memory.before(attempt)
                tally.trained += 1
                alone = (await plain.judge(attempt.proposal.reward)).seconds
                for step, critic in critics.items():
                    verdict = await critic.judge(attempt.proposal.reward, memory=known)
                    tally.seconds += max(0.0, verdict.seconds - alone)
                    for found in verdict.findings:
                        if found.code in STEPS[step]:
                            tally.saved[found.code] += 1
                            tally.lost[found.code] += good
                            print(
                                f"  {attempt.id} (fitness {attempt.fitness}): {found.code}"
                                f" {found.message}",
                                flush=True,
                            )
                if known.episodes:
                    scored = await runner.score(
                        attempt.proposal.reward,
                        {each.attempt: each.path for each in known.episodes},
                    )
                    returns = {
                        each.attempt: part
                        for each, part in zip(known.episodes, scored.returns, strict=True)
                    }
                    order = ordering(known.episodes, returns)
                    if order.pairs >= LEAST_PAIRS:
                        tally.ordered.append((order.right / order.pairs, good))
        finally:
            await runner.close()
    return tally


def _median(attempts: list[Attempt], iteration: int) -> float:
    values = [
        each.fitness
        for each in attempts
        if each.iteration == iteration and each.fitness is not None
    ]
    return statistics.median(values) if values else 0.0


def main() -> None:
    """Print one line for each run and code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    for folder in parser.parse_args().runs or list_runs():
        print(folder.name, flush=True)
        tally = asyncio.run(replay(open_run(folder)))
        for code in ("N501", "N502", "G601"):
            print(
                f"  {code}: {tally.saved[code]} of {tally.trained} trainings saved,"
                f" {tally.lost[code]} good ones lost"
            )
        if tally.ordered:
            shares = sorted(share for share, _ in tally.ordered)
            least_good = min((share for share, good in tally.ordered if good), default=float("nan"))
            print(
                f"  pairs ordered right by {len(shares)} rewards: least {shares[0]:.3f}, median"
                f" {statistics.median(shares):.3f}, least of a good one {least_good:.3f}"
            )
        print(f"  {tally.seconds / max(1, tally.trained):.2f} s a reward", flush=True)


if __name__ == "__main__":
    main()

"""Proofs of a soaked batch, read from its records and the server's."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from injector import Happened
from soak_server import DOLLARS, PROMPT_TOKENS, REPLY_TOKENS

from eureka_agent.archive.run_folder import Run, reading
from eureka_agent.batch.folder import SearchState, searches_of
from eureka_agent.batch.intents import IntentsFile
from eureka_agent.records import Stage
from eureka_agent.search.attempts import failures

NEAR_S = 1.5
"""A reply that a killed driver did not store was given at most so long before its end."""
MOST_MB = 500.0
REQUEST_DOLLARS = Decimal(DOLLARS * (PROMPT_TOKENS + REPLY_TOKENS)) / 1_000_000


@dataclass(frozen=True)
class Proof:
    """One thing that was to hold."""

    what: str
    shown: str
    holds: bool


def proofs(
    runs: Path,
    max_cost: float,
    answered: Mapping[int, float],
    happened: Happened,
    largest_mb: float,
    left: Sequence[str],
) -> list[Proof]:
    """All proofs. `answered`: times of the server's replies by their numbers."""
    folders = sorted(path.parent for path in (runs / "soak").glob("*/archive.sqlite"))
    attempts, twice, beyond = 0, 0, 0
    stored: list[int] = []
    spent = Decimal(0)
    unequal = []
    for folder in folders:
        with reading(str(folder)) as run:
            found = run.archive.attempts()
            attempts += len(found)
            twice += sum(count > 1 for count in Counter(each.id for each in found).values())
            seeds = [(each.seed, *(again.seed for again in each.repeats)) for each in found]
            twice += sum(len(each) - len(set(each)) for each in seeds)
            beyond += sum(each > run.settings.steps_of_a_training for each in _env_steps(run))
            messages = run.archive.messages()
            stored += [
                int(n) for each in messages for n in re.findall(r"GAIN = (\d+)\.5", each.reply)
            ]
            spent += sum((each.cost.money or Decimal(0) for each in messages), Decimal(0))
            if folder.name.startswith("offline"):
                with reading(str(runs / "unbroken" / folder.name)) as other:
                    pairs = itertools.zip_longest(_found(run), _found(other))
                differing = [f"{ours} for {wanted}" for ours, wanted in pairs if ours != wanted]
                if differing:
                    why = [f"{each.id}: {each.reason}" for each in failures(found)]
                    unequal.append(f"{folder.name}: {differing[0]} {why}")
    failed = _failed(runs / "soak")
    lost = sorted(set(answered) - set(stored))
    excused = [number for number in lost if _is_near(answered[number], happened)]
    repeated = [number for number, count in Counter(stored).items() if count > 1]
    most = Decimal(str(max_cost))
    return [
        Proof("searches that failed but for the budget", ", ".join(failed) or "none", not failed),
        Proof("attempts, each once", f"{attempts}, {twice} twice", attempts > 0 and not twice),
        Proof("trainings beyond their steps", str(beyond), beyond == 0),
        Proof("searches unlike unbroken ones", ", ".join(unequal) or "none", not unequal),
        Proof("replies that were stored twice", str(len(repeated)), not repeated),
        Proof(
            f"replies that were lost, of {len(answered)} ({len(happened.kills)} kills)",
            f"{len(lost)}, of them {len(lost) - len(excused)} at another time",
            len(lost) == len(excused),
        ),
        Proof("spent", f"${spent:.4f} of ${most:.4f}", spent < most + REQUEST_DOLLARS),
        Proof("left behind", ", ".join(left) or "nothing", not left),
        Proof("largest memory of the driver", f"{largest_mb:.0f} MB", largest_mb < MOST_MB),
    ]


def table(found: Sequence[Proof], happened: Happened, lives: int) -> str:
    """The proofs as lines."""
    faults = ", ".join(f"{count} × {name}" for name, count in sorted(happened.counts.items()))
    width = max(len(proof.what) for proof in found)
    lines = [f"{lives} drivers; faults: {faults}", ""]
    for proof in found:
        lines.append(f"{'holds' if proof.holds else 'FAILS'}  {proof.what:<{width}}  {proof.shown}")
    return "\n".join(lines)


def _failed(batch: Path) -> list[str]:
    """Names of searches without an end, or that failed for another reason than the budget."""
    searches = searches_of(IntentsFile(batch))
    assert len(searches) == 12
    return [
        f"{each.name} ({each.message})"
        for each in searches
        if each.state is not SearchState.FINISHED
        and "limit on what models may cost" not in each.message
    ]


def _is_near(moment: float, happened: Happened) -> bool:
    """True for a reply to a driver that was about to be killed, or could store nothing."""
    return any(kill - NEAR_S <= moment <= kill + NEAR_S for kill in happened.kills) or any(
        began - NEAR_S <= moment <= end + NEAR_S for began, end in happened.full
    )


def _env_steps(run: Run) -> list[int]:
    """Env steps of every training."""
    attempts = run.archive.attempts()
    repeats = (repeat for each in attempts for repeat in each.repeats)
    outcomes = [each.outcome for each in (*attempts, *repeats, *run.archive.trainings())]
    return [each.env_steps for each in outcomes if each is not None]


def _found(run: Run) -> list[tuple[object, ...]]:
    """All that a search found, without times."""
    attempts = [
        (each.id, each.stage, each.seed, each.fitness_per_seed) for each in run.archive.attempts()
    ]
    assert any(each[1] is Stage.TRAINED for each in attempts)
    return attempts

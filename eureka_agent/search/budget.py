"""One dial for a search: from a budget in wall time or in env steps follow the settings that a
person did not give.

Nothing here trains, measures or looks at a clock: what was measured comes in as a `Speed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal

from eureka_agent import wording
from eureka_agent.errors import SettingsError
from eureka_agent.settings import MOST_ENV_STEPS, MOST_ITERATIONS, SearchSettings, schedule_of
from eureka_agent.training_counts import TrainingCounts

DIALLED = ("iterations", "samples", "final_seeds", "finalists", "env_steps", "baselines")
"""The settings that a budget chooses where they are not given. Slots and workers follow from them
(`capacity.py`)."""
RACING_SAVING = 0.07 / 0.15
"""What a plan counts on racing to save of the most that it can, which is where every rung stops
half of who comes to it. How much it is depends on the task: of generations of eight, replayed, one
rung at 0.7 saves 0.07 to 0.10 of at most 0.15, and rungs elsewhere save 0.4 to 0.7 of their most
(benchmarks/LOG.md). This is the low end at 0.7, since a plan that hopes for more overruns its
budget; where it is more, the search ends sooner than planned."""
TRAINING_SHARE = 0.85
"""Part of the wall time after the start that goes to trainings; the rest is designers, dry runs,
evaluations, and waiting for the last one."""
LEAST_SAMPLES, PREFERRED_SAMPLES, MOST_SAMPLES = 2, 8, 16
ENOUGH_ITERATIONS = 5
"""Generations after which a larger budget goes to more samples; as many as Eureka's searches have
(Ma et al. 2023)."""
LEAST_FINAL_SEEDS = 3
LEAST_BASELINE_SEEDS = 2
"""Fewer have no spread, without which nothing can be said of a difference."""
LEAST_FINALISTS = 1
LEAST_PART_OF_ENV_STEPS = 4
"""A training keeps at least one over this of the task's env steps."""

_MOST_SECONDS = 10**9
_EXPECTED = (
    "write wall time such as 90s, 10m, 8h or 1h30m, or env steps such as 500k, 5M, 2G or 5000000; "
    "case matters: 10m is ten minutes, 10M is ten million env steps"
)
_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?", re.ASCII)
_STEPS = re.compile(r"(\d+(?:\.\d+)?)([kMG]?)", re.ASCII)
_SUFFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


# ── what a person writes ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Budget:
    """What a whole search may take: wall time or env steps, one of them."""

    text: str
    """As the person wrote it."""
    seconds: float | None = None
    env_steps: int | None = None


def parse_budget(text: str) -> Budget:
    """`"90s"`, `"1h30m"` (wall time) or `"500k"`, `"5M"`, `"5000000"` (env steps). Raises
    SettingsError for anything else."""
    word, what = text.strip(), f"the budget is {text!r}"
    seconds = wall_time(text, what, _EXPECTED)
    if seconds is not None:
        return Budget(word, seconds=seconds)
    if (steps := _STEPS.fullmatch(word)) is not None:
        amount = Decimal(steps[1]) * _SUFFIXES[steps[2]]
        _check_range(what, amount, MOST_ENV_STEPS, "env steps", _EXPECTED)
        return Budget(word, env_steps=math.floor(amount))
    raise SettingsError(f"{what}: expected wall time or env steps", _EXPECTED)


def wall_time(text: str, what: str, hint: str) -> float | None:
    """Seconds of `"90s"` or `"1h30m"`; None for what is no wall time. Raises SettingsError with
    `what` and `hint` for one that is out of range."""
    found = _TIME.fullmatch(text.strip())
    if found is None or not text.strip():
        return None
    hours, minutes, seconds = (Decimal(part or 0) for part in found.groups())
    total = 3600 * hours + 60 * minutes + seconds
    _check_range(what, total, _MOST_SECONDS, "s", hint)
    return float(total)


def _check_range(what: str, amount: Decimal, most: int, unit: str, hint: str) -> None:
    if not 1 <= amount <= most:
        raise SettingsError(f"{what}: expected 1 to {most:,} {unit}", hint)


# ── what a search takes ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Speed:
    """What was measured of the trainings on this machine."""

    workers: int
    steps_per_second: float
    """Env steps of one worker while all of them train."""
    start_seconds: float
    """From the start of the workers to their first env steps."""


def steps_of_a_training(settings: SearchSettings) -> int:
    """Env steps that one training makes: those asked for, rounded up to whole updates."""
    return settings.updates * settings.num_envs * settings.horizon


class Dial:
    """A budget, and what a search with given settings takes of it."""

    def __init__(
        self,
        budget: Budget,
        baselines: Callable[[SearchSettings], int],
        *,
        restorable: bool,
        speed: Speed | None = None,
        used_seconds: float = 0.0,
    ) -> None:
        """`baselines`: trainings that are missing in the cache; `restorable`: whether trainings can
        pause, which racing needs.

        A budget in wall time needs `speed`; `used_seconds` of it have passed.
        """
        if budget.seconds is not None and speed is None:
            raise ValueError("a budget in wall time needs a measured speed")
        self.budget = budget
        self.speed = speed
        self._baselines = baselines
        self._restorable = restorable
        self._used_seconds = used_seconds

    def fits(self, settings: SearchSettings) -> bool:
        """Whether a search with these settings stays within the budget."""
        if self.budget.seconds is not None:
            return self.seconds(settings) <= self.budget.seconds
        return self.env_steps(settings) <= (self.budget.env_steps or 0)

    def env_steps(self, settings: SearchSettings) -> float:
        """Env steps of the whole search."""
        made = self._trainings(settings)
        generation = made.candidates * self._kept(settings) + made.confirmations
        return (
            settings.iterations * generation + made.finals + made.baselines
        ) * steps_of_a_training(settings)

    def seconds(self, settings: SearchSettings) -> float:
        """Wall time of the whole search, what has passed included. A phase takes as long as the
        worker with the most trainings."""
        assert self.speed is not None
        made = self._trainings(settings)
        workers = self.speed.workers
        one_after_another = self._generations(settings, made, workers)
        one_after_another += math.ceil(made.finals / workers) + math.ceil(made.baselines / workers)
        training = steps_of_a_training(settings) / self.speed.steps_per_second
        return (
            self._used_seconds
            + self.speed.start_seconds
            + one_after_another * training / TRAINING_SHARE
        )

    def _generations(self, settings: SearchSettings, made: TrainingCounts, workers: int) -> float:
        """Trainings that a worker makes one after the other in all generations.

        In a steady search the next proposal takes the place of what has ended, so no worker waits
        for another's last training. Confirmations run beside it: they take env steps, and no phase.
        """
        alone = math.ceil(made.candidates / workers) * self._kept(settings) + math.ceil(
            made.confirmations / workers
        )
        if schedule_of(settings) == "generations":
            return settings.iterations * alone
        shared = (made.candidates * self._kept(settings) + made.confirmations) / workers
        # nothing follows the last ones
        return (settings.iterations - 1) * max(shared, 1.0) + alone

    def needed(self, settings: SearchSettings) -> str:
        """What these settings take, rounded up, as a budget is written."""
        if self.budget.seconds is not None:
            return time_text(self.seconds(settings))
        return steps_text(self.env_steps(settings))

    def _trainings(self, settings: SearchSettings) -> TrainingCounts:
        return TrainingCounts.of(settings, baselines=self._baselines(settings))

    def _kept(self, settings: SearchSettings) -> float:
        """Part of the candidates' env steps that is trained."""
        if not (settings.racing and self._restorable and settings.samples > 1):
            return 1.0
        most = sum((1.0 - rung) / 2**number for number, rung in enumerate(_rungs(settings), 1))
        return 1.0 - RACING_SAVING * most


def _rungs(settings: SearchSettings) -> list[float]:
    """Parts of a training at which candidates are compared: where the checkpoints are that stand
    for the ones asked for."""
    from eureka_agent.search.racing import rungs_of  # with numpy, which a list of runs needs not

    return [steps / steps_of_a_training(settings) for steps in rungs_of(settings).env_steps]


def steps_text(steps: float) -> str:
    """Env steps as a budget is written, rounded up to two digits: `"480k"`, `"1.7M"`."""
    whole = math.ceil(steps)
    unit = 10 ** max(0, len(str(whole)) - 2)
    whole = math.ceil(whole / unit) * unit
    suffix, size = next(
        ((name, size) for name, size in reversed(_SUFFIXES.items()) if whole >= size), ("", 1)
    )
    return f"{whole / size:g}{suffix}"


def time_text(seconds: float) -> str:
    """Wall time as a budget is written, rounded up: to 5 s under two minutes, to minutes under two
    hours, else to ten minutes."""
    if seconds <= 120:
        return f"{5 * math.ceil(seconds / 5)}s"
    minutes = math.ceil(seconds / 60)
    if minutes < 120:
        return f"{minutes}m"
    hours, minutes = divmod(10 * math.ceil(minutes / 10), 60)
    return f"{hours}h" + (f"{minutes}m" if minutes else "")


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Plan:
    """The settings of a search within its budget, and why they are what they are."""

    settings: SearchSettings
    text: str
    """One sentence for the person."""


def plan(settings: SearchSettings, given: Collection[str], dial: Dial) -> Plan:
    """The largest search within the budget; `given` names the settings that stay as they are.

    A generation of eight comes first: where it does not fit, there are fewer seeds of the
    baselines, then no baselines, then fewer final seeds, then fewer finalists. Where it does not
    fit even then, it is as large as it can be, and trainings are shorter only where there is no
    room for two. Raises SettingsError where that does not help.
    """
    levels = _reductions(settings, given, dial)
    found = _first_with(PREFERRED_SAMPLES, levels, given, dial)
    if found is None:
        least = _shorter(levels[-1], given, dial)
        search = _largest(least, given, dial)
        if search is None:
            raise _too_small(_smallest(least, given), dial)
        found = search if least != levels[-1] else _first_with(search.samples, levels, given, dial)
        assert found is not None  # the last level has room for so many
    return Plan(found, _sentence(settings, found, dial))


def _first_with(
    samples: int, levels: Sequence[SearchSettings], given: Collection[str], dial: Dial
) -> SearchSettings | None:
    """The largest search on the first of these levels on which a generation of so many fits; None
    where it fits on none."""
    for level in levels:
        search = _smallest(level, given)
        if dial.fits(search if "samples" in given else _sized(search, samples=samples)):
            return _largest(level, given, dial)
    return None


def _too_small(least: SearchSettings, dial: Dial) -> SettingsError:
    unit = "" if dial.budget.env_steps is None else " env steps"
    return SettingsError(
        f"the budget of {dial.budget.text}{unit} is too small: the smallest search here takes"
        f" {dial.needed(least)}{unit} ({wording.plural(least.iterations, 'generation')} of"
        f" {least.samples}, {wording.plural(least.finalists, 'finalist')},"
        f" {wording.plural(least.final_seeds, 'final seed')}, {least.env_steps:,} env steps a"
        " training)",
        f"take --budget {dial.needed(least)} or more, or set by hand what matters less to you"
        " (--no-baselines, --finalists 0, --confirm 0)",
    )


def _sized(settings: SearchSettings, **sizes: int) -> SearchSettings:
    return settings.model_copy(update=sizes)


def _smallest(settings: SearchSettings, given: Collection[str]) -> SearchSettings:
    least = {"iterations": 1, "samples": LEAST_SAMPLES}
    return _sized(settings, **{name: value for name, value in least.items() if name not in given})


def _reductions(
    settings: SearchSettings, given: Collection[str], dial: Dial
) -> list[SearchSettings]:
    """The settings, and then with less and less of what may be reduced, in the order in which it
    may."""
    levels = _with_fewer_baselines(settings, given, dial)
    for name, least in (("final_seeds", LEAST_FINAL_SEEDS), ("finalists", LEAST_FINALISTS)):
        while name not in given and settings.finalists and getattr(levels[-1], name) > least:
            levels.append(_sized(levels[-1], **{name: getattr(levels[-1], name) - 1}))
    return levels


def _with_fewer_baselines(
    settings: SearchSettings, given: Collection[str], dial: Dial
) -> list[SearchSettings]:
    """The settings, and then with fewer baselines, down to those that cost least."""
    levels = [settings]
    if settings.trains_baselines and not {"baselines", "baseline_seeds"} & set(given):
        seeds = range(settings.seeds_of_baselines - 1, LEAST_BASELINE_SEEDS - 1, -1)
        levels += [_sized(settings, baseline_seeds=number) for number in seeds]
        levels.append(_sized(settings, baselines=False))
    cheapest = min(
        range(len(levels)), key=lambda place: dial.env_steps(_smallest(levels[place], given))
    )
    return levels[: cheapest + 1]


def _largest(settings: SearchSettings, given: Collection[str], dial: Dial) -> SearchSettings | None:
    """Eight samples first, then generations up to five, then samples up to sixteen, then
    generations; None where nothing fits."""
    search = _smallest(settings, given)
    if not dial.fits(search):
        return None

    def grown(name: str, high: int) -> SearchSettings:
        low = getattr(search, name)
        if name in given or low >= high:
            return search
        return _sized(
            search,
            **{name: _most(lambda value: dial.fits(_sized(search, **{name: value})), low, high)},
        )

    search = grown("samples", PREFERRED_SAMPLES)
    if "samples" in given:
        return grown("iterations", MOST_ITERATIONS)
    if search.samples == PREFERRED_SAMPLES:
        search = grown("iterations", ENOUGH_ITERATIONS)
        search = grown("samples", MOST_SAMPLES)
    return grown("iterations", MOST_ITERATIONS) if search.samples == MOST_SAMPLES else search


def _most(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number up to `high` that fits; `low` does, and what is larger than one that does
    not fit does not either."""
    above = low + 1
    while above <= high and fits(above):
        low, above = above, 2 * above
    above = min(above, high + 1)
    while above - low > 1:
        middle = (low + above) // 2
        low, above = (middle, above) if fits(middle) else (low, middle)
    return low


def _shorter(settings: SearchSettings, given: Collection[str], dial: Dial) -> SearchSettings:
    """The settings with trainings that are as short as the smallest search needs them."""
    if "env_steps" in given or dial.fits(_smallest(settings, given)):
        return settings
    whole, update = settings.env_steps, settings.num_envs * settings.horizon

    def with_updates(updates: int) -> SearchSettings:
        return _sized(settings, env_steps=min(whole, updates * update))

    least = math.ceil(whole / (LEAST_PART_OF_ENV_STEPS * update))
    if dial.fits(_smallest(with_updates(least), given)):
        least = _most(
            lambda updates: dial.fits(_smallest(with_updates(updates), given)),
            least,
            settings.updates,
        )
    return with_updates(least)


def _sentence(asked: SearchSettings, found: SearchSettings, dial: Dial) -> str:
    """All that a budget came to, such as `"the budget of 5M gives 1 generation of 8, 3 finalists
    from 5 seeds, …"`."""
    sizes = [f"{wording.plural(found.iterations, 'generation')} of {found.samples}"]
    if found.finalists:
        sizes.append(
            f"{wording.plural(found.finalists, 'finalist')} from"
            f" {wording.plural(found.final_seeds, 'seed')}"
        )
    if found.trains_baselines:
        sizes.append(f"baselines from {wording.plural(found.seeds_of_baselines, 'seed')}")
    elif asked.trains_baselines:
        sizes.append("no baselines")
    sizes.append(f"{found.env_steps:,} env steps a training")
    if dial.speed is not None:
        rate = wording.count(dial.speed.workers * dial.speed.steps_per_second)
        cost = (
            f"at most about {wording.duration(dial.seconds(found))} at the {rate} env steps/s that"
            " were measured"
        )
    else:
        cost = f"at most about {wording.count(dial.env_steps(found))} env steps"
    reduced = [
        f"{name.replace('_', ' ')} {getattr(asked, name):,} → {getattr(found, name):,}"
        for name in ("final_seeds", "finalists", "env_steps")
        if getattr(asked, name) != getattr(found, name)
    ]
    if not found.baselines and asked.baselines:
        reduced.insert(0, "no baselines")
    elif found.baseline_seeds != asked.baseline_seeds:
        reduced.insert(0, f"baseline seeds {asked.seeds_of_baselines} → {found.seeds_of_baselines}")
    return f"the budget of {dial.budget.text} gives {', '.join(sizes)}: {cost}" + (
        f"; reduced to fit: {', '.join(reduced)}" if reduced else ""
    )

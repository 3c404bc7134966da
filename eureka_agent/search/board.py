"""Clips, best attempts and feedback: a run as a person sees it between two generations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from eureka_agent import wording
from eureka_agent.analysis import standing
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.analysis.wishes import measure_words, measured_attempts
from eureka_agent.archive.artefacts import attempt_folder
from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.safe_files import inside
from eureka_agent.errors import EurekaError, RunFolderError
from eureka_agent.feedback_records import (
    LATEST_SECOND,
    MOST_CLIPS,
    Clip,
    Judgement,
    Reading,
    Wish,
    feedback_line,
)
from eureka_agent.fleet.warm_worker import FilmMaker, FilmSettings
from eureka_agent.journal.state import RunState
from eureka_agent.records import Attempt, Stage
from eureka_agent.report.blocks import Block, Facts, Grid, Words
from eureka_agent.report.progress import leaderboard
from eureka_agent.sandbox.cores import usable_cores
from eureka_agent.search.filming import trained_policies
from eureka_agent.search.preparation import Preparation
from eureka_agent.search.recorder import WORKERS_FOLDER
from eureka_agent.search.seeds import derive_seed
from eureka_agent.settings import judge_of
from eureka_agent.value_ranges import short_number

CLIP_SIZE = (320, 240)
CLIP_SECONDS = 6.0
CLIP_STARTS = 3
"""Start states side by side in a clip: one tells little of a policy that falls now and then."""
CLIP_EPISODES = 24
"""Start states, of which each round shows others."""
BOARD_ROWS = 12
_MOST_MAKERS = 2
_MOST_STATE_VARIABLES = 24


def trained_names(run: Run) -> list[str]:
    """Trained attempts, best first by what ranks them."""
    return [each.id for each in leaderboard(run.archive.state)]


def best_name(run: Run) -> str:
    """The best attempt; empty without any."""
    return next(iter(trained_names(run)), "")


def newest(state: RunState) -> list[Attempt]:
    """Trained attempts of the last generation that has any with their policies, in order."""
    trained = [each for each in state.attempts() if each.stage is Stage.TRAINED]
    shown = [each for each in trained if each.id not in state.pruned]
    last = max((each.iteration for each in shown), default=-1)
    return [each for each in shown if each.iteration == last]


def newest_names(run: Run) -> list[str]:
    """The newest attempts, as many as are shown side by side."""
    return [each.id for each in newest(run.archive.state)[:MOST_CLIPS]]


def check_trained(names: Iterable[str], run: Run) -> None:
    """Raise EurekaError for a name that is no trained attempt."""
    attempts = run.archive.state.attempts()
    known = [each.id for each in attempts if each.stage is Stage.TRAINED]
    for name in names:
        if name not in known:
            hint = f"there are {', '.join(known) or 'none'}"
            raise EurekaError(f"{name!r} is no trained attempt of this run", hint)


def source_of(run: Run, attempt: str) -> str:
    """Source of a trained attempt's reward. Raises EurekaError for another name."""
    check_trained([attempt], run)
    return run.archive.state.by_id[attempt].proposal.reward.source


def rankable(run: Run, of: str, attempt: str) -> tuple[str, ...]:
    """Terms of an attempt's reward, or metrics of the task. Raises EurekaError for neither."""
    if of == "metrics":
        return tuple(each.name for each in run.description.public_variables())
    if of != "terms":
        raise EurekaError(f"cannot rank {of!r}", "expected terms or metrics")
    found = run.archive.state.by_id.get(attempt)
    outcome = None if found is None else found.outcome
    return () if outcome is None else tuple(outcome.checkpoints[-1].components)


def next_pair(run: Run) -> tuple[str, str] | None:
    """The pair whose comparison tells most, in an order that follows from the choices; None for
    fewer than two attempts that can be shown."""
    state = run.archive.state
    found = standing.preferences_of(state.attempts(), state.feedback)
    shown = [name for name in found.names if name not in state.pruned]
    pair = found.next_pair(shown) if len(shown) > 1 else None
    flipped = derive_seed(run.settings.seed, "order", len(standing.choices_of(state.feedback))) % 2
    return (pair[1], pair[0]) if pair is not None and flipped else pair


# ── in words ──────────────────────────────────────────────────────────────────────────────────────


def board(run: Run) -> list[Block]:
    """The best attempts, by what ranks them, and how far a model agrees with the person."""
    state, judge = run.archive.state, judge_of(run.settings)
    feedback, by, ranked = state.feedback, standing.what_ranks(state.feedback), leaderboard(state)
    latest = {each.id for each in newest(state)}
    columns: dict[str, Callable[[Attempt], str]] = {"attempt": lambda each: each.id}
    if by == "fitness":
        columns["fitness"] = lambda each: wording.number(each.fitness)
    if standing.choices_of(feedback) or by == "model":
        found = standing.preferences_of(state.attempts(), feedback, by)
        columns["strength"] = lambda each: wording.strength(*found.strength(each.id))
        columns["is the best with"] = lambda each: f"{found.chance_best[each.id]:.0%}"
    columns[""] = lambda each: "new" if each.id in latest else ""
    shown = ranked[:BOARD_ROWS]
    words = {"choices": "your choices", "model": f"{judge}, from pictures"}.get(by, "fitness")
    best = f", of which the best {BOARD_ROWS} are" if len(ranked) > BOARD_ROWS else ""
    grid = Grid(
        tuple(columns),
        [[make(each) for make in columns.values()] for each in shown],
        ids=[each.id for each in shown],
        numbers=("fitness", "strength", "is the best with"),
    )
    amount = wording.plural(len(ranked), "trained attempt")
    blocks: list[Block] = [Words(f"{amount}, ranked by {words}{best}:"), grid]
    if compared := len(standing.comparisons_of_model(feedback)):
        agreed, goals = (
            standing.agreement(state.attempts(), feedback),
            standing.sub_goals_of(feedback),
        )
        blocks.append(Words(f"{standing.judged_words(judge, compared, agreed, goals or ())}."))
    return blocks


def said_lines(run: Run) -> dict[int, str]:
    """The person's standing feedback by its number, oldest first; a wish with its measure."""
    lines = {}
    for each in run.archive.state.feedback:
        if not isinstance(each.feedback, Judgement):
            reading = each.feedback.reading if isinstance(each.feedback, Wish) else None
            measure = "" if reading is None else measure_line(run, reading)
            line = f"{each.who} {feedback_line(each.feedback)}"
            lines[each.number] = f"{line} ({measure})" if measure else line
    return lines


def measure_line(run: Run, reading: Reading) -> str:
    """A reading's measure, with its values in the newest and the best attempt; may be empty."""
    if reading.measure is None:
        return ""
    latest = (each.id for each in newest(run.archive.state))
    names = dict.fromkeys((*latest, *trained_names(run)[:1]))
    found = measured_attempts(reading.measure, run.folder, list(names))
    now = ", ".join(f"{name} {short_number(value)}" for name, value in found.items())
    words = measure_words(reading.measure, run.description)
    return f"{words}: {now}" if now else words


def reading_facts(run: Run, wish: Wish) -> Facts:
    """The reading of a wish, about which the person is asked."""
    reading = wish.reading or Reading(text="")
    facts = {
        "I take this as": reading.text,
        "stays": "; ".join(reading.stays),
        "goes": "; ".join(reading.goes),
        "changes": "; ".join(reading.changes),
        "measured by": measure_line(run, reading),
        "not understood": ", ".join(reading.unread),
    }
    return Facts({title: text for title, text in facts.items() if text})


# ── clips ─────────────────────────────────────────────────────────────────────────────────────────


class Clips:
    """Clips of a run's attempts, each made once."""

    def __init__(self, run: Run, ready: Preparation) -> None:
        self._run = run
        self._seed = derive_seed(run.settings.seed, "clips")
        scratch = inside(run.folder, WORKERS_FOLDER) / "clips"
        self._makers = [
            FilmMaker(ready.wall, ready.problem(), scratch / str(number))
            for number in range(min(_MOST_MAKERS, usable_cores()))
        ]

    def _start(self) -> int:
        """Number of the first start state of this round."""
        rounds = max((each.iteration for each in newest(self._run.archive.state)), default=0)
        return CLIP_STARTS * rounds % CLIP_EPISODES

    async def of(self, names: Sequence[str]) -> dict[str, Path]:
        """This round's clips of attempts. Raises EurekaError where nothing can be drawn."""
        check_trained(names, self._run)
        start = self._start()
        paths = {
            name: attempt_folder(self._run.folder, name) / f"clip-{start}.mp4" for name in names
        }
        missing = [name for name, path in paths.items() if not path.is_file()]
        turns = [missing[number :: len(self._makers)] for number in range(len(self._makers))]

        async def make(maker: FilmMaker, turn: Sequence[str]) -> None:
            for name in turn:
                await self._make(maker, name, start, paths[name])

        await asyncio.gather(*map(make, self._makers, turns))
        return paths

    async def _make(self, maker: FilmMaker, name: str, start: int, path: Path) -> None:
        (shown,) = trained_policies(self._run, [name])
        settings = FilmSettings(
            seed=self._seed,
            episodes=CLIP_EPISODES,
            shown=tuple(range(start, start + CLIP_STARTS)),
            size=CLIP_SIZE,
            seconds=CLIP_SECONDS,
            fitness=False,  # a choice rests on what is seen
        )
        fingerprint, states = self._run.description.fingerprint, path.with_suffix(".npz")
        await maker.film([shown.subject], settings, fingerprint, path, trajectories=states)

    async def moment(self, name: str, second: float, panel: int) -> tuple[Clip, str]:
        """The episode in a panel (from 1) of a clip, and its state there. Raises EurekaError."""
        if not (1 <= panel <= CLIP_STARTS and 0.0 <= second <= LATEST_SECOND):
            raise EurekaError(
                f"second {second:g} of panel {panel} is no place in a clip",
                f"expected a time from 0 on, and a panel from 1 to {CLIP_STARTS}",
            )
        path = (await self.of([name]))[name].with_suffix(".npz")
        clip = Clip(attempt=name, seed=self._seed, episode=self._start() + panel - 1)
        episode = read_trajectories(path)[f"0-{clip.episode}"]
        length = len(episode.get("fitness", ()))
        if not length:
            raise RunFolderError(f"{str(path)!r} has no steps", "make the clip again")
        step = round(second / self._run.description.control_dt) - 1
        step = min(max(step, 0), length - 1)
        public = {each.name for each in self._run.description.public_variables()}
        parts = [
            f"{variable} {', '.join(map(short_number, np.ravel(values[step])[:6].tolist()))}"
            for variable, values in episode.items()
            if variable in public
        ]
        return clip, f"step {step + 1} of {length}: {'; '.join(parts[:_MOST_STATE_VARIABLES])}"

    async def close(self) -> None:
        """End the workers."""
        for maker in self._makers:
            await maker.close()

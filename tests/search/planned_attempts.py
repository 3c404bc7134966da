"""Attempts by hand, with where they came from, and whole searches that nobody trains."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from outcomes import make_outcome

from eureka_agent.journal.entries import RunStarted
from eureka_agent.records import Attempt, Operator, Proposal, Stage, TaskDescription
from eureka_agent.rewards import CodeReward
from eureka_agent.search.strategies import Strategy
from eureka_agent.settings import SearchSettings

TUNABLE = "GAIN = 2.0\n\ndef compute_reward(position):\n    return GAIN * position, {}\n"


def started(description: TaskDescription, settings: SearchSettings, **more: Any) -> RunStarted:
    """The entry with which a process begins."""
    known = {"run_name": "", "sentence": "", "wall": "process", "designer": "offline", **more}
    return RunStarted.model_validate({**known, "description": description, "settings": settings})


def planned(
    iteration: int,
    sample: int,
    fitness: float | None = None,
    operator: Operator = Operator.FRESH,
    parents: Sequence[str] = (),
    *,
    stage: Stage | None = None,
    revision: int = 0,
    designer: str = "offline",
    source: str = TUNABLE,
) -> Attempt:
    """An attempt called `<iteration>-<sample>`, both from 0; trained with this fitness, else failed
    or at the stage given."""
    return Attempt(
        id=f"{iteration}-{sample}" + (f"-r{revision}" if revision else ""),
        iteration=iteration,
        sample=sample,
        revision=revision,
        proposal=Proposal(
            reward=CodeReward(source=source, author=designer),
            reasoning="",
            operator=operator,
            parents=tuple(parents),
        ),
        stage=stage or (Stage.FAILED if fitness is None else Stage.TRAINED),
        seed=1,
        outcome=None if fitness is None else make_outcome(fitness),
    )


def invented_search(
    strategy: Strategy, seed: int, iterations: int, samples: int, failing: float = 0.3
) -> list[Attempt]:
    """A search whose fitness is drawn: with rejected revisions, stopped ones, scores that could not
    be had, rounds that fail and are tried again."""
    generator = random.Random(seed)
    history: list[Attempt] = []
    for iteration in range(iterations):
        for attempt_round in range(3):
            plans = strategy.plan(iteration, history, samples)
            made = []
            for place, plan in enumerate(plans):
                sample = attempt_round * samples + place
                revisions = generator.choice((0, 0, 0, 1, 2))
                source = plan.operator, plan.parents
                made += [
                    planned(
                        iteration, sample, None, *source, stage=Stage.REJECTED, revision=revision
                    )
                    for revision in range(revisions)
                ]
                all_fail = attempt_round == 0 and (seed + iteration) % 4 == 3
                failed = all_fail or generator.random() < failing
                stage = generator.choice((Stage.FAILED, Stage.REJECTED, Stage.TRAINED))
                fitness = None if failed else round(generator.gauss(iteration, 3.0), 1)
                end = {"stage": stage if failed else None, "revision": revisions}
                made.append(planned(iteration, sample, fitness, *source, **end))
            history += made
            if any(attempt.fitness is not None for attempt in made):
                break
    return history

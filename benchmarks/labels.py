"""Worth and cost of labelled rewards, with a stand-in for the model that labels.

    python benchmarks/labels.py [--seeds N] [--kinds NAME …] [TASK …]
    python benchmarks/labels.py --speed

The stand-in is a rule: a caption is worth 1 if it tells of one of the task's steps (`PROGRESS`,
chosen from the sentence before anything was trained), else 0; of two captions the one that tells of
a later step is better. In a kind with `by a model` it has the labels that a model gave beforehand
to the captions that trainings with the rule met most (`caption_labels.json`; it was told what a
search tells it, 100 captions a request), and none for others. Both answer as slowly as a model:
every `ITERATIONS` iterations the twenty captions that are met most and have no label are labelled,
at most fifty times. The human and the sparse reward are trained as they are written, and with
labels by each method, from equal seeds; the best checkpoint's policy is scored over fresh episodes
without noise. `--speed` trains eight at once without labels and with two labels a second, twenty at
a time as requests bring them, and compares the processor's time of as many iterations, in turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any, Literal

from _common import Subject, start, subject
from _results import write_result
from reward_kinds import FIRST_SEED, ended

from eureka_agent.label_records import CaptionLabel, LabelMethod
from eureka_agent.training.trainer import Trainer

TASKS = ("doorkey/reach_goal_far", "craft/hunt_cow", "craft/collect_iron")
MODEL = " by a model"
CAPTION_LABELS = Path(__file__).with_name("caption_labels.json")
ITERATIONS, BATCH, REQUESTS = 8, 20, 50
PROGRESS = {
    "doorkey/reach_goal_far": (
        "just picked up the key",
        "just unlocked the door",
        "just entered the right room",
        "just reached the goal",
    ),
    "craft/hunt_cow": ("cow beside it", "just hit a cow", "just eaten a cow"),
    "craft/collect_iron": (
        "just mined a stone",
        "just placed a table",
        "just made a stone pickaxe",
        "just mined iron",
    ),
}
METHODS: tuple[LabelMethod, ...] = ("retrieval", "classification", "ranking")
KINDS = (
    "human",
    "sparse",
    *(f"sparse {method}" for method in METHODS),
    "human retrieval",
    f"sparse classification{MODEL}",
    f"sparse retrieval{MODEL}",
)


class StandIn:
    """Stand-in that labels what trainings want, by a rule or as a model did."""

    def __init__(
        self, chosen: Subject, trainer: Trainer, method: LabelMethod, *, by_model: bool = False
    ) -> None:
        self._steps = PROGRESS[chosen.name]
        self._known: dict[str, int] = {}
        if by_model:
            self._known = json.loads(CAPTION_LABELS.read_text())[chosen.name]
        self._caption = chosen.loaded.environment_class.caption
        self._trainer, self._method = trainer, method
        self._iteration = self.requests = 0
        self.labels: list[CaptionLabel] = []
        self._last: int | None = None
        self._answered: set[int] = set()

    def _step(self, code: int) -> int:
        """Number of the task's step that a caption tells of, from 1; 0 for none."""
        text = self._caption(code)
        if self._known:
            return self._known[text]
        return max((n for n, words in enumerate(self._steps, 1) if words in text), default=0)

    def look(self) -> None:
        """Answer, if it is time."""
        self._iteration += 1
        if self._iteration % ITERATIONS == 0 and self.requests < REQUESTS:
            self.answer(BATCH)

    def answer(self, most: int) -> None:
        """Label so many captions that are wanted most."""
        counts: dict[int, int] = {}
        for wanted in self._trainer.wanted_labels(2 * BATCH).values():
            for each in wanted:
                known = not self._known or each.text in self._known
                if each.code not in self._answered and known:
                    counts[each.code] = max(counts.get(each.code, 0), each.count)
        codes = sorted(counts, key=lambda code: (-counts[code], code))[:most]
        if not codes:
            return
        self.requests += 1
        self._answered.update(codes)
        self.labels += self._of(codes)
        for job in self._trainer.running():
            self._trainer.give_labels(job, self.labels)

    def _of(self, codes: list[int]) -> list[CaptionLabel]:
        if self._method != "ranking":
            return [CaptionLabel(code=each, value=float(self._step(each) > 0)) for each in codes]
        chain = [*([] if self._last is None else [self._last]), *codes]
        self._last = chain[-1]
        compared = []
        for one, other in itertools.pairwise(chain):
            apart = self._step(one) - self._step(other)
            value = 0.5 if not apart else float(apart > 0)
            compared.append(CaptionLabel(code=one, other=other, value=value))
        return compared


def trained(chosen: Subject, kind: str, seeds: int) -> dict[str, Any]:
    """Fitness by seed of a baseline, perhaps with labels: `sparse retrieval`."""
    name, _, method = kind.removesuffix(MODEL).partition(" ")
    reward: Literal["human", "sparse"] = "human" if name == "human" else "sparse"
    trainer = Trainer(chosen.make, chosen.task, chosen.settings(), seeds)
    how: Any = {"kind": "labels", "method": method} if method else {}
    for seed in range(seeds):
        trainer.submit(str(seed), chosen.reward(reward), FIRST_SEED + seed, **how)
    if not method:
        return {**ended(chosen, trainer), "requests": 0, "labels": 0}
    labeller = StandIn(chosen, trainer, how["method"], by_model=kind.endswith(MODEL))
    found = ended(chosen, trainer, labeller.look)
    return {**found, "requests": labeller.requests, "labels": len(labeller.labels)}


def speed(task: str, method: str, members: int = 8, iterations: int = 20, turns: int = 2) -> float:
    """Processor time with labels over that without, for equally many iterations of one training
    each, taken in turns."""
    seconds: dict[bool, float] = {}
    chosen = subject(task)
    for labelled in [False, True] * turns:
        trainer = Trainer(chosen.make, chosen.task, chosen.settings(), members)
        how: Any = {"kind": "labels", "method": method} if labelled else {}
        for seed in range(members):
            trainer.submit(str(seed), chosen.reward(), seed, **how)
        labeller = StandIn(chosen, trainer, how.get("method", "retrieval"))
        trainer.iterate()
        began, last = time.process_time(), 0.0
        for _ in range(iterations):
            trainer.iterate()
            if labelled and time.monotonic() - last >= BATCH / 2.0:
                last = time.monotonic()
                labeller.answer(BATCH)
        taken = time.process_time() - began
        seconds[labelled] = min(taken, seconds.get(labelled, taken))
    return seconds[True] / seconds[False]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", default=TASKS, metavar="TASK")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    start()
    if arguments.speed:
        ratios = {task: {each: speed(task, each) for each in METHODS} for task in TASKS}
        print(ratios)
        write_result("labels_speed", {"processor_time_ratio": ratios})
        return
    for task in arguments.tasks:
        found: dict[str, dict[str, Any]] = {}
        for kind in arguments.kinds:
            line = found[kind] = trained(subject(task), kind, arguments.seeds)
            values = ", ".join(f"{value:.3g}" for value in line["fitness"])
            text = f"{task:24} {kind:32} {line['mean']:7.3g} ± {line['std']:<7.3g}"
            print(f"{text} {line['requests']:3} {line['cpu_s']:5.0f} s   {values}", flush=True)
            write_result(f"labels_{task.partition('/')[2]}", {"task": task, "kinds": found})


if __name__ == "__main__":
    main()

"""Checks of `eureka envs --check` on a command environment: jobs as a search gives them."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from eureka_agent.rewards import baseline
from eureka_agent.simulation import command_events as told
from eureka_agent.simulation.command_environment import (
    CommandTask,
    command_of,
    played,
    recorded_transitions,
)
from eureka_agent.simulation.command_job import CommandJob, RewardFaultError
from eureka_agent.training.conformance import checks
from eureka_agent.training.conformance.checks import Nonconforming, NotApplicable, Note, Remark
from eureka_agent.training.reward import load_reward
from eureka_agent.wording import plural, rough_duration

_SHARE = 20
"""A short training has this part of the task's env steps."""
_EPISODES = 4
_TOLERANCE = 1e-4
_DRY_STEPS = 20
_ANY_REWARD = "def compute_reward(actions):\n    size = actions.reshape(len(actions), -1).sum(-1)\n"
_GOOD = f"{_ANY_REWARD}    return size, {{'size': size}}\n"
_WRONG = {
    "raises": f"{_ANY_REWARD}    raise ValueError('asked for by the check')\n",
    "gives NaN": f"{_ANY_REWARD}    return size * float('nan'), {{'size': size}}\n",
    "has another shape": f"{_ANY_REWARD}    return size.sum(), {{'size': size}}\n",
    "reads an unknown variable": "def compute_reward(no_such_variable):\n"
    "    return no_such_variable, {'all': no_such_variable}\n",
}


@dataclass
class _Trained:
    curve: list[told.CurveEvent]
    env_steps: int
    policy: bytes
    seconds: float
    first_s: float
    """Seconds to the first curve event."""


@dataclass
class CommandChecks:
    """The checks of one task, which share a training."""

    limit_s: float
    _first: _Trained | None = None

    def all(self) -> tuple[tuple[str, Callable[[checks.Subject], Any]], ...]:
        """The checks in order, with their names."""
        return (
            ("describes itself", self.describes),
            ("fitness", self.fitness),
            ("rewards", self.rewards),
            ("dry run", self.dry_run),
            ("a short training", self.trains),
            ("same seed, same training", self.same_seed),
            ("another seed, another training", self.other_seed),
            ("wrong rewards are told", self.wrong_rewards),
            ("evaluation", self.evaluates),
            ("memory and cost", self.cost),
        )

    def describes(self, subject: checks.Subject) -> Iterator[Remark | Note]:
        """Every variable has words, and varies under random actions."""
        assert subject.loaded.described is not None
        event, episodes = subject.loaded.described.event, subject.loaded.described.episodes
        for each in event.variables:
            if not each.doc:
                yield Remark("words for every variable", f"{each.name!r} has no doc", _WORDS_HINT)
        values = recorded_transitions(episodes, subject.cls.all_variables())
        # a term may pay for what random actions never come to
        natives = {each.name for each in event.native_terms}
        for each in event.variables:
            rows = values[each.name].reshape(len(values[each.name]), -1)
            if each.name not in natives and bool((rows == rows[0]).all()):
                actual = f"{each.name!r} is the same in {len(rows)} steps"
                yield Remark("values that vary", actual, "leave it out, or tell it as a constant")
        versions = ", ".join(f"{name} {version}" for name, version in event.versions.items())
        yield Note(f"{plural(len(event.variables), 'variable')}{versions and f'; {versions}'}")

    def fitness(self, subject: checks.Subject) -> None:
        """The command's fitness of a step is that of `fitness.py` on the values that it tells."""
        assert subject.loaded.described is not None
        function = subject.fitness()
        for each in subject.loaded.described.episodes:
            if each.told.fitness_steps is None or not each.values:
                continue
            values = recorded_transitions([each], subject.cls.all_variables())
            expected, found = function(values), torch.tensor(each.told.fitness_steps)
            if found.shape != expected.shape or not torch.allclose(
                found, expected, rtol=_TOLERANCE, atol=_TOLERANCE
            ):
                step = (
                    0 if found.shape != expected.shape else int((found - expected).abs().argmax())
                )
                raise Nonconforming(
                    f"{float(expected[step]):.6g} in step {step} of episode {each.told.number}"
                    f" ({each.told.by} actions)",
                    f"{float(found[step]) if len(found) > step else 'nothing'}",
                    "compute the fitness on the values of the state that the step reached, before"
                    " any reset",
                )

    def rewards(self, subject: checks.Subject) -> None:
        """The human and the sparse reward load and name declared variables."""
        for kind in ("human", "sparse"):
            source = subject.loaded.reward_source(subject.task, kind)
            if source is not None:
                load_reward(baseline(source), subject.cls)

    def dry_run(self, subject: checks.Subject) -> None:
        """A reward runs for some steps in the simulator."""
        if not _told(subject).can.dry_run:
            raise NotApplicable
        asked = {"most_steps": _DRY_STEPS, "trainings": [_training(0)]}
        events = self._events(subject, "dry_run", asked, {"reward-0.py": _GOOD.encode()})
        if not any(isinstance(each, told.RanEvent) for each in events):
            raise Nonconforming("a `ran` event", "none", "docs/protocol.md: the mode dry_run")

    def trains(self, subject: checks.Subject) -> list[Note]:
        """A training tells its curve and ends with a policy."""
        self._first = found = self._trained(subject, 1)
        steps = found.env_steps / max(found.seconds - found.first_s, 1e-3)
        return [Note(f"{found.env_steps} env steps, about {steps:.0f} a second")]

    def same_seed(self, subject: checks.Subject) -> list[Remark]:
        """Two trainings from one seed have equal curves."""
        if self._first is None:
            raise NotApplicable
        again = self._trained(subject, 1)
        if _numbers(again) == _numbers(self._first):
            return []
        hint = "seed every library, and use one thread; on a GPU it may not be possible"
        return [Remark("equal curves", "they differ", hint)]

    def other_seed(self, subject: checks.Subject) -> None:
        """A training from another seed has another curve."""
        if self._first is None:
            raise NotApplicable
        if _numbers(self._trained(subject, 2)) == _numbers(self._first):
            hint = "use the training's `seed` for start states, networks and noise"
            raise Nonconforming("another curve", "the same one", hint)

    def wrong_rewards(self, subject: checks.Subject) -> None:
        """A reward that raises, gives NaN, has another shape or reads an unknown variable ends its
        training with a fault of the reward."""
        for what, source in _WRONG.items():
            try:
                list(self._training_events(subject, 1, source))
            except RewardFaultError:
                continue
            hint = 'write a `fault` with `"whose": "reward"`; eureka_adapter does it'
            expected = f"a fault of the reward where it {what}"
            raise Nonconforming(expected, "the training went on", hint)

    def evaluates(self, subject: checks.Subject) -> list[Note] | list[Remark]:
        """A policy plays the asked episodes, and equal seeds give equal scores."""
        if self._first is None:
            raise NotApplicable
        scores = [self._scores(subject, self._first.policy) for _ in range(2)]
        if scores[0] != scores[1]:
            hint = "seed the start states by the policy's `seed` and the episode's number"
            return [Remark("equal scores", f"{scores[0]} and {scores[1]}", hint)]
        mean = sum(scores[0]) / len(scores[0])
        return [Note(f"fitness {mean:.4g} over {plural(_EPISODES, 'episode')}")]

    def cost(self, subject: checks.Subject) -> Iterator[Remark | Note]:
        """A process fits into `memory_gib`, and all slots onto this machine."""
        command = _class(subject).command
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / (1 << 20)
        if used > command.memory_gib:
            actual = f"a process used {used:.1f} GiB"
            yield Remark(f"at most {command.memory_gib:g} GiB", actual, "raise `memory_gib`")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        if command.slots * command.cores > cores:
            actual = f"{command.slots} slots of {plural(command.cores, 'core')}"
            yield Remark(f"{plural(cores, 'core')} or fewer", actual, "lower `slots` or `cores`")
        if self._first is not None:
            whole = self._first.first_s + _SHARE * (self._first.seconds - self._first.first_s)
            several = 16 * whole / command.slots
            yield Note(
                f"{used:.1f} GiB a process; a training takes {rough_duration(whole)}, of which"
                f" {self._first.first_s:.0f} s to start; 16 of them {rough_duration(several)}"
            )

    # ── jobs ──────────────────────────────────────────────────────────────────────────────────────

    def _trained(self, subject: checks.Subject, seed: int) -> _Trained:
        source = subject.loaded.reward_source(subject.task, "human") or _GOOD
        began, first_s = time.monotonic(), 0.0
        curve: list[told.CurveEvent] = []
        done: tuple[told.TrainedEvent, bytes] | None = None
        for event, policy in self._training_events(subject, seed, source):
            if isinstance(event, told.CurveEvent):
                first_s = first_s or time.monotonic() - began
                curve.append(event)
            elif isinstance(event, told.TrainedEvent):
                done = event, policy
        if done is None or not curve:
            missing = "`trained`" if done is None else "`curve`"
            raise Nonconforming(f"a {missing} event", "none", "docs/protocol.md: the mode train")
        seconds = time.monotonic() - began
        return _Trained(curve, done[0].env_steps, done[1], seconds, first_s)

    def _training_events(
        self, subject: checks.Subject, seed: int, source: str
    ) -> Iterator[tuple[told.CommandEvent, bytes]]:
        """Events of a short training, with the last policy of `trained`."""
        budget = subject.task.training
        steps = max(budget.env_steps // _SHARE, 4 * budget.num_envs)
        asked = {"env_steps": steps, "save_every_s": 1e9, "trainings": [_training(seed)]}
        with (
            tempfile.TemporaryDirectory() as scratch,
            self._job(
                subject, "train", asked, {"reward-0.py": source.encode()}, Path(scratch)
            ) as job,
        ):
            for event in job.run(self.limit_s):
                last = isinstance(event, told.TrainedEvent)
                yield event, job.file(event.policies[-1].policy) if last else b""  # type: ignore[union-attr]

    def _scores(self, subject: checks.Subject, policy: bytes) -> list[float]:
        asked = {"id": "0", "policy": "policy-0", "seed": 3, "episodes": _EPISODES, "record": []}
        events = self._events(subject, "evaluate", {"policies": [asked]}, {"policy-0": policy})
        episodes = [each for each in events if isinstance(each, told.EpisodeEvent)]
        if sorted(each.number for each in episodes) != list(range(_EPISODES)):
            actual = f"{plural(len(episodes), 'episode')}"
            raise Nonconforming(f"episodes 0 to {_EPISODES - 1}", actual, "docs/protocol.md")
        for each in episodes:
            played(each, subject.cls.all_variables())
        return [each.fitness for each in sorted(episodes, key=lambda it: it.number)]

    def _events(
        self,
        subject: checks.Subject,
        mode: str,
        asked: Mapping[str, Any],
        files: Mapping[str, bytes],
    ) -> list[told.CommandEvent]:
        with (
            tempfile.TemporaryDirectory() as scratch,
            self._job(subject, mode, asked, files, Path(scratch)) as job,
        ):
            return list(job.run(self.limit_s))

    def _job(
        self,
        subject: checks.Subject,
        mode: str,
        asked: Mapping[str, Any],
        files: Mapping[str, bytes],
        scratch: Path,
    ) -> CommandJob:
        cls = _class(subject)
        command = command_of(cls.folder, cls.command, subject.name)
        job = {"device": "cpu", "num_envs": subject.task.training.num_envs, **asked}
        return CommandJob(command, mode, job, files, scratch)


_WORDS_HINT = "a designer knows a variable by its name, unit, frame and doc alone"


def _class(subject: checks.Subject) -> type[CommandTask]:
    assert issubclass(subject.cls, CommandTask)
    return subject.cls


def _told(subject: checks.Subject) -> told.DescribedEvent:
    return _class(subject).described


def _training(seed: int) -> dict[str, Any]:
    return {"id": "0", "reward": "reward-0.py", "seed": seed, "state": None, "rungs": []}


def _numbers(trained: _Trained) -> list[dict[str, Any]]:
    return [each.model_dump() for each in trained.curve]

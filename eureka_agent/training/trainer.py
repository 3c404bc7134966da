"""Trainings side by side: jobs wait in a queue, take slots of a population, and leave them."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from eureka_agent.label_records import CaptionLabel, CaptionMet, LabelMethod
from eureka_agent.parameters import check_curriculum, distribution_at
from eureka_agent.records import CurvePoint, Outcome, ParameterStage
from eureka_agent.rewards import RewardKind
from eureka_agent.settings import TrainingSettings, check_training
from eureka_agent.simulation.vec_task import VecTask, padded
from eureka_agent.task import Task
from eureka_agent.training.blend import BlendedReward
from eureka_agent.training.environment_faults import (
    checked_caption,
    checked_codes,
    environment_code,
    fitness_fault,
)
from eureka_agent.training.fitness import (
    EndedEpisodes,
    EpisodeTracker,
    FitnessFunction,
    WrittenFitnessFunction,
    fitness_in_parts,
)
from eureka_agent.training.labels import LabelledReward
from eureka_agent.training.latent import LatentReward
from eureka_agent.training.learned import PREFIX, LearnedPay, Lived
from eureka_agent.training.members import (
    REWARD_TIMEOUT,
    CheckpointKeeper,
    Failure,
    Job,
    Member,
    Snapshot,
    TrainingRecord,
    member_rewards,
)
from eureka_agent.training.population import StackedMembers, curve_points
from eureka_agent.training.reward import Reward
from eureka_agent.training.rollout import Rollout, broken_observations, spoiled_members

_HUGE = "the reward's numbers are too large to be averaged or learned from"


@dataclass(frozen=True)
class MemberProgress:
    job: str
    point: CurvePoint


@dataclass(frozen=True)
class MemberFinished:
    """A training that has made all its steps."""

    job: str
    outcome: Outcome
    policies: dict[int, dict[str, Tensor]]
    """Policies of its best checkpoints by index, for `policy_bytes`."""

    @property
    def policy(self) -> dict[str, Tensor]:
        """Policy of the best checkpoint."""
        return self.policies[self.outcome.best_checkpoint]


@dataclass(frozen=True)
class MemberFailed:
    """A training that its reward has ended."""

    job: str
    code: str
    """`"raised"`, `"contract"`, `"timeout"`, `"not-a-number"` or, if written, `"fitness"`."""
    reason: str
    env_steps: int


@dataclass(frozen=True)
class MemberAtRung:
    """A training that has reached a rung, and goes on."""

    job: str
    env_steps: int
    """The rung, the last of those that one iteration reached."""
    policy: dict[str, Tensor]
    """Its current policy, for `policy_bytes`."""


TrainerEvent = MemberProgress | MemberFinished | MemberFailed | MemberAtRung


class Trainer:
    """Up to `slots` trainings at once, each determined by its reward, its seed and the settings."""

    def __init__(
        self,
        make_environment: Callable[[int], VecTask],
        task: Task,
        settings: TrainingSettings,
        slots: int,
        device: str = "cpu",
        reward_timeout: float = REWARD_TIMEOUT,
        iteration_limit: float | None = None,
        designed: int = 0,
    ) -> None:
        """`iteration_limit`: timeout in seconds of an iteration's steps. `designed`: most numbers
        of an observation that is designed; 0: none is."""
        check_training(settings)
        self._settings = settings
        rows = slots * settings.num_envs
        self._environment = make_environment(rows)
        whole = padded(rows, self._environment.row_multiple)  # for equal rounding
        if whole != rows:
            self._environment.close()
            self._environment = make_environment(whole)
        found = self._environment.device
        if found.type != torch.device(device).type:
            raise ValueError(f"the environment is on {found}, expected {device!r}")
        if self._environment.restorable:
            other = make_environment(1 if self._environment.num_envs > 1 else 2)
            self._environment.tell_rows_from_constants(other)
            other.close()
        self._task = task
        variables, constants = self._environment.all_variables(), self._environment.constants
        self._fitness = FitnessFunction(task, variables, constants)
        self._population = StackedMembers(self._environment, settings, slots, designed)
        distribution = self._population.distribution
        self.policy_metadata = {"activation": settings.activation, **distribution.metadata}
        """Metadata for `policy_bytes` of every policy from here."""
        self._episodes = EpisodeTracker(slots, settings.num_envs, task.fitness_reduction, found)
        self._reward_timeout = reward_timeout
        words = "an iteration of the environment", "--training-timeout"
        of = type(self._environment), iteration_limit
        self._environment_code = partial(environment_code, *of, *words)
        """Context of calls of the environment's own code."""
        self._queue: deque[Job] = deque()
        self._members: dict[int, Member] = {}
        self._slots = slots
        # A GPU chooses kernels by size, and they may round differently. There all slots take part
        # in every iteration, so that a training's numbers do not depend on its neighbours.
        self._whole_width = found.type != "cpu"
        self.timers = dict.fromkeys(("physics", "policy", "reward", "update", "rest"), 0.0)
        """Wall seconds of all iterations, by part."""
        self._seconds = 0.0

    @property
    def busy(self) -> bool:
        return bool(self._queue or self._members)

    @property
    def restorable(self) -> bool:
        """True where the environment's state can be read, which `snapshot` needs."""
        return self._environment.restorable

    def running(self) -> tuple[str, ...]:
        """Names of the trainings that have a slot, in order of the slots."""
        return tuple(self._members[slot].job.name for slot in sorted(self._members))

    def snapshot(self, job: str) -> Snapshot:
        """State of a running training, between two iterations. Raises KeyError for another."""
        slot = {member.job.name: slot for slot, member in self._members.items()}[job]
        member = self._members[slot]
        keeper = member.keeper
        record = TrainingRecord(
            seed=member.job.seed,
            iterations=keeper.iterations,
            env_steps=member.env_steps,
            seconds=time.perf_counter() - member.began,
            checkpoints=tuple(keeper.records),
            recent=tuple(keeper.recent),
        )
        state = self._population.member_state(slot)
        for name, row in self._episodes.member_tensors().items():
            state[f"episodes.{name}"] = row[slot].to("cpu", copy=True)
        if member.job.learned is not None:
            for name, each in member.job.learned.state().items():
                state[PREFIX + name] = each.to("cpu", copy=True)
        return Snapshot(record, state, dict(keeper.policies))

    def submit(
        self,
        job: str,
        reward: Reward,
        seed: int,
        snapshot: Snapshot | None = None,
        rungs: Sequence[int] = (),
        curriculum: Sequence[ParameterStage] = (),
        kind: RewardKind = "code",
        method: LabelMethod = "retrieval",
    ) -> None:
        """Queue a training for the next free slot, from `snapshot` if given. The first
        iteration that reaches one of `rungs` (env steps, ascending) gives its policy. `curriculum`:
        distributions of the environment's parameters; a stage holds for the episodes that begin in
        the first iteration from its env step on, or later. `kind`: what the reward is to the
        training; `method`: what it makes of labels. Raises ParameterError."""
        check_curriculum(curriculum, self._environment.parameters)
        active = (member.job for member in self._members.values())
        if any(job == other.name for other in (*self._queue, *active)):
            raise ValueError(f"job {job!r} is already queued or running")
        done = 0 if snapshot is None else snapshot.record.env_steps
        left = tuple(steps for steps in rungs if steps > done)
        learned: LearnedPay | None = None
        if kind == "latent":
            learned = LatentReward(seed, self._environment.max_episode_length)
        elif kind == "blend":
            learned = BlendedReward(seed, self._settings.discount)
        elif kind == "labels":
            learned = LabelledReward(method, self._caption)
        self._queue.append(Job(job, reward, seed, snapshot, left, tuple(curriculum), learned))

    def give_labels(self, job: str, labels: Sequence[CaptionLabel]) -> None:
        """Give a queued or running training labels; does nothing for an unknown name."""
        for each in (*self._queue, *(member.job for member in self._members.values())):
            if each.name == job and isinstance(each.learned, LabelledReward):
                each.learned.give(labels)

    def wanted_labels(self, most: int) -> dict[str, list[CaptionMet]]:
        """Captions of each running training that have no label, at most so many."""
        jobs = [each.job for each in self._members.values()]
        pays = {
            each.name: each.learned for each in jobs if isinstance(each.learned, LabelledReward)
        }
        with self._environment_code():
            return {name: each.wanted(most) for name, each in pays.items()}

    def cancel(self, job: str) -> None:
        """Drop a queued or running training; does nothing for an unknown name."""
        self._queue = deque(queued for queued in self._queue if queued.name != job)
        for slot, member in list(self._members.items()):
            if member.job.name == job:
                self._free(slot)

    # without autograd's bookkeeping, a few percent of the time
    @torch.inference_mode()
    def iterate(self) -> list[TrainerEvent]:
        """Make one PPO iteration of all running trainings; events in order of the slots. Raises
        EnvironmentFaultError where the environment raises, hangs or is not finite."""
        began = time.perf_counter()
        with self._environment_code():
            for slot in range(self._slots):  # slots above the highest used one are idle
                if self._queue and slot not in self._members:
                    self._begin(slot, self._queue.popleft())
            for slot, member in self._members.items():
                parameters = distribution_at(member.job.curriculum, member.env_steps)
                if parameters != member.parameters:  # another stage
                    self._population.set_parameters(slot, parameters)
                    member.parameters = parameters
        if not self._members:
            return []
        waited_before = self.timers["reward"]
        width = self._slots if self._whole_width else max(self._members) + 1
        self._environment.active_rows = width * self._settings.num_envs
        jobs = [member.job for member in self._members.values()]
        arguments = {*self._fitness.arguments}.union(*(job.reward.arguments for job in jobs))
        if any(isinstance(job.learned, LabelledReward) for job in jobs):
            arguments |= {*self._environment.caption_variables}
        with self._environment_code():
            rollout = self._population.collect(self._members, width, arguments)
        for part in ("physics", "policy"):
            self.timers[part] = self._population.collector.seconds[part]
        trained = {slot: member.env_steps for slot, member in self._members.items()}
        broken = broken_observations(rollout, self._population.collector.designed)
        spoiled = spoiled_members(rollout, trained, type(self._environment))
        with self._timed("reward"):
            given = self._members, rollout, self._reward_timeout
            rewards, components, failures = member_rewards(*given)
        nan_actions = Failure("not-a-number", f"the policy's actions became NaN: {_HUGE}")
        failures |= dict.fromkeys(spoiled, nan_actions)
        unseen = Failure("not-a-number", "the designed observation became NaN, infinite or huge")
        failures |= dict.fromkeys(broken, unseen)
        fitness = self._fitness_of(rollout, failures)
        ended = rollout.terminated | rollout.truncated
        episodes = self._episodes.update(fitness, ended)
        with self._timed("reward"):
            self._pay_learned(rollout, rewards, components, failures, episodes)
        with self._timed("update"):
            learning, healthy = self._population.learn(self._members, rollout, rewards)
        for slot, is_healthy in enumerate(healthy.tolist()):
            if slot in self._members and not is_healthy:
                reason = f"the policy's parameters became NaN or infinite{_size(rewards[slot])}"
                failures.setdefault(slot, Failure("not-a-number", reason))
        steps = rewards[0].numel()
        worked = time.perf_counter() - began - (self.timers["reward"] - waited_before)
        for member in self._members.values():
            member.env_steps += steps
            member.worked += worked
        members = self._members.items()
        going_on = {slot: each.env_steps for slot, each in members if slot not in failures}
        points, faults = curve_points(going_on, rollout, rewards, components, episodes, learning)
        for slot, number in faults.items():
            size = _size(rewards[slot])
            reason = f"{number} of an iteration became NaN or infinite: {_HUGE}{size}"
            failures[slot] = Failure("not-a-number", reason)
        events: list[TrainerEvent] = []
        for slot in sorted(self._members):
            events += self._events(slot, points.get(slot), failures.get(slot))
        self._seconds += time.perf_counter() - began
        measured = (seconds for part, seconds in self.timers.items() if part != "rest")
        self.timers["rest"] = self._seconds - sum(measured)
        return events

    def _begin(self, slot: int, job: Job) -> None:
        settings = self._settings
        numbers = settings.updates, settings.checkpoints, settings.kept_policies
        begin = job.curriculum[-1].env_steps if job.curriculum else 0
        keeper = CheckpointKeeper(*numbers, counts_from=begin)
        begins = distribution_at(job.curriculum, 0), job.reward.observation
        self._population.start(slot, job.seed, *begins)
        self._episodes.reset(slot)
        member = self._members[slot] = Member(job, keeper, time.perf_counter())
        if job.snapshot is None:
            return
        record, state, policies = job.snapshot.record, job.snapshot.state, job.snapshot.policies
        job.snapshot = None  # frees its memory
        self._population.load_member_state(slot, state)
        for name, rows in self._episodes.member_tensors().items():
            rows[slot] = state[f"episodes.{name}"].to(rows)
        if job.learned is not None:
            names = [name for name in state if name.startswith(PREFIX)]
            kept = {name.removeprefix(PREFIX): state[name] for name in names}
            job.learned.load(kept, self._environment.device)
        keeper.resume(record.iterations, record.checkpoints, record.recent, policies)
        member.env_steps, member.began = record.env_steps, member.began - record.seconds
        member.component_names = record.component_names

    def _free(self, slot: int) -> None:
        del self._members[slot]
        self._population.clear(slot)

    def _pay_learned(
        self,
        rollout: Rollout,
        rewards: Tensor,
        components: Mapping[int, Mapping[str, Tensor]],
        failures: Mapping[int, Failure],
        episodes: EndedEpisodes,
    ) -> None:
        """Put what is learned in place of the totals."""
        ended = rollout.terminated | rollout.truncated
        working = {slot: each.job for slot, each in self._members.items() if slot not in failures}
        labelled = [
            slot for slot, job in working.items() if isinstance(job.learned, LabelledReward)
        ]
        captions = self._captions(labelled, rollout) if labelled else {}
        for slot, job in working.items():
            if job.learned is None:
                continue
            learned, total = job.learned, rewards[slot].clone()
            lived = Lived(
                total=total,
                components={name: each.view_as(total) for name, each in components[slot].items()},
                ended=ended[slot],
                fitness=episodes.fitness[slot],
                gained=episodes.gained[slot],
                observations=rollout.normalized[slot].flatten(0, 1),
                reached=rollout.final_observations[slot],
            )
            if isinstance(learned, BlendedReward):
                lived.scores = self._population.scores(slot, rollout)
            elif isinstance(learned, LabelledReward):
                lived.captions = captions[slot]
            rewards[slot] = learned.pay(lived)

    def _caption(self, code: int) -> str:
        """A code's words. Raises EnvironmentFaultError."""
        with environment_code(type(self._environment)):
            text = self._environment.caption(code)
        return checked_caption(text, code, type(self._environment))

    def _captions(self, slots: list[int], rollout: Rollout) -> dict[int, Tensor]:
        """Codes of some members' states, (steps, num_envs) each. Raises EnvironmentFaultError."""
        names = self._environment.caption_variables
        values = {name: rollout.arguments[name][slots].flatten(0, 2) for name in names}
        shape = rollout.terminated[slots].shape
        with self._environment_code():
            codes = self._environment.caption_codes(values)
        codes = checked_codes(codes, shape.numel(), type(self._environment)).view(shape)
        return dict(zip(slots, codes, strict=True))

    def _fitness_of(self, rollout: Rollout, failures: dict[int, Failure]) -> Tensor:
        """Fitness per step, shape (members, steps, num_envs); a written one may fail its member."""
        values = {name: rollout.arguments[name].flatten(0, 2) for name in self._fitness.arguments}
        members, *shape = rollout.terminated.shape
        # Members in one call could lie in other SIMD lanes than by themselves, where some functions
        # round differently.
        parts = members if math.prod(shape) % self._environment.row_multiple else 1
        with environment_code(type(self._environment)):
            fitness, reasons = fitness_in_parts(self._fitness, values, parts, members)
        fitness = fitness.view(rollout.terminated.shape)
        for slot, reason in reasons.items():
            if slot in self._members:
                failures.setdefault(slot, Failure("fitness", reason))
        finite = fitness.flatten(1).isfinite().all(dim=1)
        for slot, sound in enumerate(finite.tolist()):
            if slot in self._members and slot not in failures and not sound:
                if not isinstance(self._task.fitness, WrittenFitnessFunction):  # sound states
                    raise fitness_fault(self._task)
                reason = "the task's fitness became NaN or infinite"
                failures.setdefault(slot, Failure("not-a-number", reason))
        return fitness

    def _events(
        self, slot: int, point: CurvePoint | None, failure: Failure | None
    ) -> list[TrainerEvent]:
        member = self._members[slot]
        name = member.job.name
        if failure is not None:
            self._free(slot)
            return [MemberFailed(name, failure.code, failure.reason, member.env_steps)]
        assert point is not None
        member.keeper.add(point, lambda: self._tensors(slot))
        events: list[TrainerEvent] = [MemberProgress(name, point)]
        if member.keeper.finished:
            keeper, seconds = member.keeper, time.perf_counter() - member.began
            outcome = Outcome(
                env_steps=member.env_steps,
                seconds=seconds,
                checkpoints=tuple(keeper.records),
                best_checkpoint=keeper.best,
                training_fitness=keeper.records[keeper.best].fitness,
                learned=None if member.job.learned is None else member.job.learned.learned(),
            )
            events.append(MemberFinished(name, outcome, member.keeper.policies))
            self._free(slot)
        elif member.job.rungs and member.env_steps >= member.job.rungs[0]:
            passed = [each for each in member.job.rungs if each <= member.env_steps]
            policy = self._population.policy_tensors(slot)
            events.append(MemberAtRung(name, passed[-1], policy))
            member.job.rungs = member.job.rungs[len(passed) :]
        return events

    def _tensors(self, slot: int) -> dict[str, Tensor]:
        """A member's policy, with what its reward has learned by then."""
        learned = self._members[slot].job.learned
        named = {} if learned is None else learned.tensors()
        kept = {PREFIX + name: each.contiguous() for name, each in named.items()}
        return self._population.policy_tensors(slot) | kept

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.timers[part] += time.perf_counter() - began


def _size(rewards: Tensor) -> str:
    return f"; the largest reward of the iteration was {rewards.abs().max():.3g}"

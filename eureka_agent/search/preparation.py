"""The preparation of a run, new or resumed: it trains nothing and makes no run folder."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eureka_agent import errors
from eureka_agent.archive.run_folder import Run, cache_parent, runs_folder
from eureka_agent.archive.safe_files import driver_scratch
from eureka_agent.critic.critic import Critic
from eureka_agent.designer.interface import GivenDesigner, given_reward
from eureka_agent.designer.observations import kept_reward
from eureka_agent.fleet.devices import Hardware, choose_hardware, kernels_for
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.fleet import Fleet, Machine
from eureka_agent.fleet.jobs import Population, Problem
from eureka_agent.fleet.ray_cluster import Cluster, connected
from eureka_agent.journal.entries import Notice, Observer, RunCreated
from eureka_agent.records import TaskDescription, Verdict, WrittenFitness
from eureka_agent.report.curve_log import check_installed
from eureka_agent.sandbox.choose import choose_wall
from eureka_agent.sandbox.wall import Wall
from eureka_agent.search import written_fitness
from eureka_agent.search.advisers import recorded_of
from eureka_agent.search.budget import parse_budget, time_limit
from eureka_agent.search.budget_plan import missing_baselines, plan_within
from eureka_agent.search.card import card_for, makes_card
from eureka_agent.search.clock import SearchClock, pace_of, plan_capacity
from eureka_agent.search.deadline import ALONE, SearchContext
from eureka_agent.search.labelling import check_labels
from eureka_agent.search.models import Models, models_of
from eureka_agent.settings import (
    UNMEASURED,
    SearchSettings,
    TrainingSettings,
    check_training,
    parse_settings,
    training_part,
)
from eureka_agent.text import one_line
from eureka_agent.wording import some_of


class RewardRejectedError(errors.EurekaError):
    """A given reward that the critic rejects. No run was made."""

    exit_status = 1

    def __init__(self, verdict: Verdict, origin: str) -> None:
        """`origin` names the reward's source."""
        first = next(finding for finding in verdict.findings if finding.severity == "error")
        super().__init__(
            f"the critic rejects the reward in {origin!r}: {first.code} {first.message}", first.hint
        )
        self.verdict = verdict


@dataclass
class Preparation:
    """The parts of a run besides its folder and a fleet."""

    settings: SearchSettings
    given: GivenDesigner | None
    models: Models | None
    wall: Wall
    cluster: Cluster | None
    """Place of its trainings, if not this machine."""
    scratch: Path
    _stack: AsyncExitStack
    """Closes what is opened."""
    dry_runner: DryRunner = field(init=False)
    hardware: Hardware = field(init=False)
    fitness: WrittenFitness | None = None
    kernels: Path | None = None
    """Folder of the environment's compiled kernels; None on a CPU."""
    created: RunCreated | None = None
    """First entry of a new run's journal."""
    seconds: float = 0.0
    """Wall time of a new run before it had a folder."""

    def problem(self) -> Problem:
        """The problem that the run's workers open."""
        return Problem(self.settings.env, self.settings.task, self.fitness)

    def population(self, slots: int) -> Population:
        """Its trainings, `slots` in a worker."""
        return Population(
            self.problem(),
            training_part(self.settings),
            slots,
            self.settings.training_timeout,
            self.settings.snapshot_interval,
            self.kernels,
            self.settings.design != "reward",
        )

    def new_fleet(self, scratch: Path) -> Fleet:
        """A fleet for this run alone."""
        workers = plan_capacity(self.settings, self.hardware.places).workers
        devices = self.hardware.devices(workers)
        return Fleet(self.wall, scratch, workers, devices, cluster=self.cluster)

    async def open(self, machine: Machine | None) -> TaskDescription:
        """Start a dry runner for the problem, or take the machine's."""
        problem, timeout_s = self.problem(), self.settings.dry_run_timeout
        if machine is not None:
            shared = machine.dry_runner(problem, timeout_s)
            self.dry_runner = await self._stack.enter_async_context(shared)
        else:
            self.dry_runner = DryRunner(self.wall, problem, self.scratch / "dry-runs", timeout_s)
            self._stack.push_async_callback(self.dry_runner.close)
            await self.dry_runner.start()
        return self.dry_runner.description

    async def add_kernels(self, runs: Path) -> None:
        """Compile the environment's kernels for a GPU, or find them among the runs."""
        if self.cluster is None:  # each node may have another GPU
            self.kernels = await kernels_for(
                self.hardware,
                self.wall,
                self.problem(),
                training_part(self.settings),
                self.dry_runner.description.environment_fingerprint,
                runs,
                self.scratch,
            )


@asynccontextmanager
async def prepared(
    values: Mapping[str, Any],
    given: GivenDesigner | None,
    observer: Observer,
    confirm: written_fitness.Confirm | None = None,
    context: SearchContext = ALONE,
) -> AsyncIterator[Preparation]:
    """The prepared parts of a new run; for the arguments and errors see `session.start`."""
    began, values = time.monotonic(), written_fitness.with_defaults(values)
    asked = checked(values, given, confirm)
    async with _begun(asked, given, observer, context) as ready:
        models = ready.models
        description = await ready.open(context.machine if asked.fitness == "task" else None)
        check_randomise(asked, description)
        check_labels(asked, description)
        recorded = {"given_source": given.reward.source} if given else recorded_of(models)
        written = await _written_fitness(ready, confirm, observer)
        if written is not None:
            began += written.shown_seconds
            await ready.dry_runner.close()  # it has the task's own metric
            ready.fitness = written.fitness
            recorded |= written.recorded()
            description = await ready.open(None)
        if given is not None:
            verdict = await Critic(description, ready.dry_runner).judge(given.reward)
            if not verdict.accepted:
                raise RewardRejectedError(verdict, given.origin)
        if asked.design == "observation" and given is None:
            kept_reward(description)
        hardware = choose_hardware(asked.device, ready.dry_runner.opened, ready.cluster)
        ready.hardware = hardware
        ready.settings = effective_settings(values, description, hardware.kind)
        check_randomise(ready.settings, description, hardware)
        await ready.add_kernels(runs_folder())
        making = makes_card(description, ready.settings, hardware.kind)
        if models is not None or not ready.settings.iterations or making:
            await measure_task(ready.dry_runner, observer)
            description = ready.dry_runner.description
        if ready.settings.budget is not None:
            baselines = missing_baselines(description, hardware)

            async def clock(sized: SearchSettings) -> SearchClock:
                wall, scratch, cluster = ready.wall, ready.scratch, ready.cluster
                pace = await pace_of(
                    sized, description, hardware, wall, scratch, observer, cluster, anew=True
                )
                live = None if models is None or models.replayed else models
                before = time.monotonic() - began
                return SearchClock(description, pace, hardware.places, baselines, before, live)

            ready.settings, text = await plan_within(ready.settings, values, baselines, clock)
            ready.seconds = time.monotonic() - began
            recorded |= {"budget": text, "seconds_before": ready.seconds}
        card, text = card_for(description, ready.settings, hardware.kind)
        ready.created = RunCreated(**recorded, card=card, card_text=text)
        yield ready


def checked(
    values: Mapping[str, Any], given: GivenDesigner | None, confirm: written_fitness.Confirm | None
) -> SearchSettings:
    """The settings that the user gave. Raises SettingsError for what is wrong with them alone."""
    asked = parse_settings(SearchSettings, values, "the settings")
    written_fitness.check_fitness_setting(asked, given, confirm)
    written_fitness.check_judge_setting(asked, given)
    if not asked.iterations and not asked.trains_baselines:
        raise errors.SettingsError(
            "with --iterations 0 the human and the sparse reward alone are trained, and"
            " --no-baselines or --finalists 0 leaves them out",
            "leave one of the two out",
        )
    if asked.train_baselines and not asked.trains_baselines:
        raise errors.SettingsError(
            "--train-baselines trains the human and the sparse reward, and --no-baselines or"
            " --finalists 0 leaves them out",
            "leave one of the two out",
        )
    if asked.rewards in ("latent", "blend") and asked.fitness in UNMEASURED:
        raise errors.SettingsError(
            f"--rewards {asked.rewards} learns from the fitness of episodes, and --fitness"
            f" {asked.fitness} has none",
            "leave one of the two out",
        )
    if asked.design != "reward" and given is None and asked.model == ("offline",):
        raise errors.SettingsError(
            f"--design {asked.design} asks for observations, which the offline designer does not"
            " write",
            "name a designer with --model <provider>/<name>, or leave --design out",
        )
    if asked.rewards == "labels" and (given is not None or asked.model == ("offline",)):
        raise errors.SettingsError(
            "--rewards labels asks a model which states help the task, and"
            f" {'a reward of your own is' if given else 'the offline designer'}"
            f" {'trained without one' if given else 'is none'}",
            "name a model for a search: --model <provider>/<model>; or take --rewards code",
        )
    check_installed(asked.log)
    if asked.budget is not None:
        parse_budget(asked.budget)
    time_limit(asked)
    return asked


@asynccontextmanager
async def prepared_again(
    run: Run, observer: Observer, context: SearchContext = ALONE
) -> AsyncIterator[Preparation]:
    """The prepared parts of a resumed run. Raises EnvironmentLoadError if its environment
    changed."""
    source = run.archive.state.began.given_source
    given = None if source is None else GivenDesigner(given_reward(source), "the run's own record")
    async with _begun(run.settings, given, observer, context) as ready:
        ready.fitness = run.written_fitness
        description = await ready.open(context.machine)
        if description.fingerprint != run.description.fingerprint:
            raise errors.EnvironmentLoadError(
                f"the environment {run.description.environment!r} has changed since the run"
                f" {run.name!r} began{_changed(run.description, description)}",
                "its old and new attempts could not be compared: bring the old files back, or"
                " start a new search",
            )
        opened = ready.dry_runner.opened
        ready.hardware = choose_hardware(run.settings.device, opened, ready.cluster)
        check_randomise(run.settings, description, ready.hardware)
        await ready.add_kernels(cache_parent(run.folder))
        yield ready


@asynccontextmanager
async def _begun(
    settings: SearchSettings,
    given: GivenDesigner | None,
    observer: Observer,
    context: SearchContext,
) -> AsyncIterator[Preparation]:
    """A preparation with models, wall and cluster, which ends with the block."""

    def tell_retry(reason: str) -> None:
        observer(Notice(text=reason, level="warning"))

    models = None if given else models_of(settings, tell_retry, context.breakers)
    machine = context.machine
    wall = choose_wall(settings.sandbox) if machine is None else machine.wall
    with driver_scratch() as scratch:
        async with AsyncExitStack() as stack:
            if models is not None:
                stack.push_async_callback(models.close)
            if machine is None:
                cluster = stack.enter_context(connected(settings.cluster, settings.sandbox))
            else:
                cluster = machine.cluster
            yield Preparation(settings, given, models, wall, cluster, scratch, stack)


def effective_settings(
    values: Mapping[str, Any], description: TaskDescription, device: str
) -> SearchSettings:
    """The settings of a run: the user's, else the task's for this kind of device, else the
    defaults; environment and task as they were found. Raises SettingsError."""
    found = {"env": description.environment, "task": description.task}
    defaults = {**description.training_on(device), **_of_command(values, description)}
    settings = parse_settings(SearchSettings, {**defaults, **values, **found}, "the settings")
    check_training(settings)
    default = SearchSettings.model_fields["initial_action_std"].default
    if description.action_choices and settings.initial_action_std != default:
        raise errors.SettingsError(
            f"initial_action_std is {settings.initial_action_std!r}, but the actions of"
            f" {description.environment!r} are choices, which have no standard deviation",
            "leave --initial-action-std out; --entropy-coefficient 0.01 keeps a policy trying"
            " several choices",
        )
    return settings


_OF_ANY_TRAINER = {"env_steps", "num_envs", "kept_policies"}
"""Settings of a training that a command is told."""


def _of_command(values: Mapping[str, Any], description: TaskDescription) -> dict[str, Any]:
    """Settings that follow from a command environment. Raises SettingsError for settings of this
    program's trainer, which has no part in it."""
    if description.command is None:
        return {}
    ours = set(TrainingSettings.model_fields) - _OF_ANY_TRAINER
    if unused := sorted(ours & values.keys()):
        raise errors.SettingsError(
            f"{unused[0]} is {values[unused[0]]!r}, a setting of this program's trainer, and"
            f" {description.environment!r} has a trainer of its own",
            f"leave --{unused[0].replace('_', '-')} out, and set it in the script, or by `options`"
            " in command.yaml",
        )
    if (kind := values.get("rewards", "code")) != "code":
        raise errors.SettingsError(
            f"--rewards {kind} needs this program's trainer, which learns what a step is paid, and"
            f" {description.environment!r} has a trainer of its own",
            "leave --rewards out",
        )
    if (design := values.get("design", "reward")) != "reward":
        raise errors.SettingsError(
            f"--design {design} needs this program's trainer, which computes the observation, and"
            f" {description.environment!r} has a trainer of its own",
            "leave --design out",
        )
    facts = description.command
    rungs = {} if facts.rungs else {"rungs": ()}
    return {"workers": facts.slots, "slots": facts.rewards, **rungs}


def check_randomise(
    settings: SearchSettings, description: TaskDescription, hardware: Hardware | None = None
) -> None:
    """Raise SettingsError where distributions of parameters cannot be searched."""
    if not settings.randomise:
        return
    flag = f"--randomise {settings.randomise}"
    without = "leave --randomise out"
    if not description.parameters:
        raise errors.SettingsError(
            f"{flag} trains under other parameters, and the environment"
            f" {description.environment!r} declares none",
            f"docs/your-own-environment.md#what-may-be-randomised says how it does, or {without}",
        )
    if settings.fitness in UNMEASURED:
        what = f"{flag} compares policies by a metric, and --fitness {settings.fitness} has none"
        raise errors.SettingsError(what, without)
    if not settings.iterations:
        what = f"{flag} trains the best reward, and --iterations 0 searches for none"
        raise errors.SettingsError(what, without)
    shared = [each.name for each in description.parameters if each.of_model]
    if shared and hardware is not None and hardware.kind == "cuda":
        raise errors.SettingsError(
            f"{flag} needs parameters that differ between episodes; on a GPU all have one model, so"
            f" that {', '.join(shared)} cannot",
            f"take --device cpu, or {without}",
        )


async def measure_task(dry_runner: DryRunner, observer: Observer, *, scores: bool = True) -> None:
    """Take the measurements for models, once in a run."""
    for with_scores in (True, False) if scores else (False,):
        try:
            await dry_runner.measure(scores=with_scores)
        except (errors.WorkerDiedError, errors.WorkerFaultError) as error:
            what = "what doing nothing scores" if with_scores else "where episodes start"
            text = f"models are not told {what}: {error.message.splitlines()[0]}"
            observer(Notice(text=text, level="warning"))
        else:
            return


def _changed(before: TaskDescription, now: TaskDescription) -> str:
    """The changed files in a sentence's form; empty if they are not known."""
    if not (before.files and now.files):
        return ""
    names = {one_line(name, 100) for name, _ in before.files.items() ^ now.files.items()}
    return f": {some_of(sorted(names), 5)}" if names else ""


async def _written_fitness(
    ready: Preparation, confirm: written_fitness.Confirm | None, observer: Observer
) -> written_fitness.AcceptedFitness | None:
    """The accepted written fitness, or none at all if that is asked for; None: the task's
    counts."""
    settings, models, dry_runner = ready.settings, ready.models, ready.dry_runner
    if settings.fitness in written_fitness.RANKED_BY:
        sentence = settings.sentence or dry_runner.description.sentence
        return await written_fitness.no_fitness(settings, models, sentence, runs_folder(), observer)
    if settings.fitness != "written" or models is None or confirm is None:
        return None
    await measure_task(dry_runner, observer, scores=False)
    return await written_fitness.accepted_fitness(
        settings, models, dry_runner, runs_folder(), confirm, observer
    )

"""The worker's loop: it reads a command, acts, answers; a training goes on between commands."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor

from eureka_agent.boundary import commands, events
from eureka_agent.boundary.bounds import KERNELS_FILE, OPENING_SECONDS
from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError, EurekaError
from eureka_agent.invocation import command as command_line
from eureka_agent.simulation.command_environment import recorded_transitions
from eureka_agent.simulation.loading import LoadedEnvironment, describe, load_environment
from eureka_agent.simulation.user_modules import describe_error, error_place
from eureka_agent.simulation.vec_task import VecTask
from eureka_agent.task import Task
from eureka_agent.training.environment_faults import (
    MEMORY_HINT,
    RAISED_HINT,
    does_not_fit,
    environment_code,
    is_gpu_failure,
    is_out_of_memory,
    loading_limit,
)
from eureka_agent.training.fitness import with_written_fitness
from eureka_agent.worker import dry_run
from eureka_agent.worker.channel import DriverChannel, File, ProtocolError
from eureka_agent.worker.evaluation_job import evaluate, measure
from eureka_agent.worker.limits import KERNELS_VARIABLE, keep_freed_memory
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward
from eureka_agent.worker.scoring import Scorer
from eureka_agent.worker.training_job import TrainedPopulation

if TYPE_CHECKING:
    from eureka_agent.worker.command_scoring import CommandScorer
    from eureka_agent.worker.command_training import CommandPopulation

MAKING_SECONDS = 120.0
"""Timeout for loading an environment, and for making one of few rows."""
_SUBJECTS = dict.fromkeys(("prepare", "train"), "the training")
_SUBJECTS |= {"evaluate": "the evaluation", "film": "the video", "open": "the environment"}
_FITNESS_ROWS = 4096
"""Initial room for steps of a written fitness."""
_Answers = Sequence[events.Event | File]


class Worker:
    """One environment and task, and the driver's commands on them."""

    def __init__(self, channel: DriverChannel, scratch: Path) -> None:
        """`scratch`: the only folder that it may write to, and where received files go."""
        torch.set_num_threads(1)  # before any operation: a fork must not meet a thread pool
        keep_freed_memory()
        self._channel = channel
        self._scratch = scratch
        # before there is anything that a reward should not see
        self._nursery = Nursery.start(channel.descriptors())
        self._device = "cpu"
        self._opened: tuple[LoadedEnvironment, Task] | None = None
        self._dry_runners: tuple[dry_run.ForkedDryRuns, Scorer] | None = None
        self._command: CommandScorer | None = None
        """None for an environment in Python."""
        self._population: TrainedPopulation | CommandPopulation | None = None
        self._ran_generated_code = False

    def run(self) -> None:
        """Serve until `Shutdown`, the end of input, or a failure of all members' training."""
        while not self._channel.closed:
            population = self._population
            training = population is not None and population.busy
            try:
                command = self._channel.receive(0.0 if training else None)
            except ProtocolError as error:
                self._channel.send(events.Fault(job=None, message=error.message, hint=error.hint))
                continue
            if isinstance(command, commands.Shutdown):
                return
            if command is not None:
                self._answer(command)
            elif training and population:
                # a simulator's failure breaks all members
                answers = self._safely(population.iterate, "the training", None)
                if any(isinstance(each, events.Fault) and each.job is None for each in answers):
                    return

    def _answer(self, command: commands.Command) -> None:
        """Answer a command. The worker goes on after any error."""
        subject = _SUBJECTS.get(command.type, f"the command {command.type!r}")
        job = getattr(command, "job", None)
        opening = isinstance(command, commands.Open)
        self._safely(lambda: self._act(command), subject, job, opening)
        if isinstance(command, commands.Evaluate | commands.Film):
            for policy in command.policies:
                (self._scratch / policy.policy).unlink(missing_ok=True)

    def _safely(
        self,
        work: Callable[[], Iterable[events.Event | File]],
        subject: str,
        job: str | None,
        opening: bool = False,
    ) -> _Answers:
        """Send the events and files, or a fault. `opening`: a load error blames no environment."""
        answers: _Answers
        try:
            answers = list(work())
        except EurekaError as error:
            loading = isinstance(error, EnvironmentLoadError) and not opening
            is_environment = loading or isinstance(error, EnvironmentFaultError)
            said = {"message": error.message, "hint": error.hint, "environment": is_environment}
            answers = [events.Fault(job=job, **said)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (the boundary of one command; the traceback goes to standard error)
            answers = [self._defect(subject, job, error)]
        for answer in answers:
            self._channel.send(answer)
        return answers

    def _defect(self, what: str, job: str | None, error: BaseException) -> events.Fault:
        """A fault for an unforeseen error, with its place where that is the environment's code."""
        traceback.print_exc(file=sys.stderr)
        if is_out_of_memory(error):
            return events.Fault(job=job, message=does_not_fit(what, error), hint=MEMORY_HINT)
        if is_gpu_failure(error):  # also for other jobs: this process cannot use it any more
            message = f"the GPU failed: {describe_error(error)}"
            return events.Fault(job=None, message=message, gpu=True)
        place = error_place(error, None if self._opened is None else self._opened[0].folder)
        hint = RAISED_HINT if place else "this is a defect of the program: please report it"
        message = f"{what} failed: {place}{describe_error(error)}"
        return events.Fault(job=job, message=message, hint=hint, environment=bool(place))

    def _act(self, command: commands.Command) -> _Answers:
        if isinstance(command, commands.Open):
            return [self._open(command)]
        if self._opened is None:
            raise EurekaError(f"{command.type!r} came before 'open'", "send 'open' first")
        loaded, task = self._opened
        scores = isinstance(command, commands.Evaluate | commands.MeasureTask)
        if scores and self._ran_generated_code:
            what = "this worker has loaded a reward: it does not score"
            raise EurekaError(what, "score in a worker of its own")
        if isinstance(command, commands.Train):
            self._ran_generated_code = True
        match command:
            case commands.DryRun():
                return [self._dry_runners_of(loaded, task)[0].run(command)]
            case commands.ScoreTransitions():
                return [self._dry_runners_of(loaded, task)[1].run(command)]
            case commands.GiveCredit():
                return [self._dry_runners_of(loaded, task)[1].credit(command)]
            case commands.AskSteps():
                return [self._dry_runners_of(loaded, task)[1].ask(command)]
            case commands.MeasureTask() if self._command is not None:
                found = self._command.measured()
                return [events.TaskMeasured(job=command.job, measurements=found)]
            case commands.Evaluate() if self._command is not None:
                return self._command.evaluate(command)
            case commands.Film() if self._command is not None:
                return self._command.film(command, task)
            case commands.Prepare() if self._command is not None:
                self._population = self._command.population(command)
                return [events.Prepared()]
            case commands.MeasureTask():
                measurements = measure(loaded, task, scores=command.scores)
                return [events.TaskMeasured(job=command.job, measurements=measurements)]
            case commands.Evaluate():
                return evaluate(command, loaded, task, self._device, self._scratch)
            # with libraries that no other job needs
            case commands.Film():
                from eureka_agent.worker.film_job import FilmJob

                return FilmJob(command, loaded, task, self._scratch).run()
            case commands.Prepare():
                rest = self._device, self._scratch, self._nursery
                self._population = TrainedPopulation(loaded, task, command, *rest)
                if not command.kernels:
                    return [events.Prepared()]
                kernels = pack_kernels(Path(os.environ[KERNELS_VARIABLE]))
                return [File(KERNELS_FILE, kernels), events.Prepared()]
        if self._population is None:
            raise EurekaError(f"{command.type!r} came before 'prepare'", "send 'prepare' first")
        match command:
            case commands.Cancel():
                self._population.cancel(command.job)
            case commands.Save():
                return [*self._population.save(), events.AllSaved()]
            case commands.Train():
                return self._population.submit(command)
            case commands.GiveLabels() if isinstance(self._population, TrainedPopulation):
                self._population.give_labels(command)
        return []

    def _open(self, command: commands.Open) -> events.Opened:
        check_device(command.device)
        # a command is given up when it is silent, and plays episodes while it describes itself
        with loading_limit(OPENING_SECONDS if command.interpreter else MAKING_SECONDS):
            known = command.described, command.interpreter
            loaded = load_environment(command.environment, command.task, *known)
        if command.fitness is not None:
            # it is generated code, so in a process of its own
            load = partial(RemoteReward, self._nursery, rows=_FITNESS_ROWS)
            loaded = with_written_fitness(loaded, command.task, command.fitness, load)
        name, task = loaded.task(command.task)
        found = loaded.environment_class
        shown, gpus = describe(loaded, name), gpus_for(found)
        told = "" if loaded.described is None else loaded.described.event.model_dump_json()
        kinds = device_types(found)
        opened = events.Opened(description=shown, gpus=gpus, device_types=kinds, described=told)
        self._command = None
        if loaded.described is not None:
            from eureka_agent.worker.command_scoring import CommandScorer, command_for

            runs = command_for(loaded, name)
            self._command = CommandScorer(runs, loaded, command.device, self._scratch)
        if command.rehearse:
            self._dry_runners_of(loaded, task, rehearsed=True)
        self._opened, self._device = (loaded, task), command.device
        return opened

    def _dry_runners_of(
        self, loaded: LoadedEnvironment, task: Task, rehearsed: bool = False
    ) -> tuple[dry_run.ForkedDryRuns, Scorer]:
        if self._dry_runners is None and loaded.described is not None:
            cls = loaded.environment_class
            recorded = recorded_transitions(loaded.described.episodes, cls.all_variables())
            self._dry_runners = self._forked(recorded, cls)
        if self._dry_runners is None:
            found = loaded.environment_class
            with environment_code(found, MAKING_SECONDS, "making the environment"):
                environment = found.create(dry_run.RECORDED_ENVIRONMENTS, "cpu", 0, task.options)
            try:
                recorded = dry_run.record_transitions(environment, found.all_variables())
                if rehearsed:
                    own = None if loaded.written is not None else task
                    dry_run.rehearse(environment, own, recorded)
            finally:
                environment.close()
            self._dry_runners = self._forked(recorded, found)
        return self._dry_runners

    def _forked(
        self, recorded: Mapping[str, Tensor], cls: type[VecTask]
    ) -> tuple[dry_run.ForkedDryRuns, Scorer]:
        descriptors = self._channel.descriptors()
        scorer = Scorer(cls, self._scratch, descriptors, recorded)
        return dry_run.ForkedDryRuns(recorded, cls, descriptors), scorer


# ── GPUs, for the driver, which imports no torch ──────────────────────────────────────────────────


def find_gpus() -> events.Gpus:
    """Count GPUs, or say why there is none. Starts no CUDA: a process that used it may not fork."""
    if torch.version.cuda is None:
        return events.Gpus(missing=f"torch {torch.__version__} is built without CUDA")
    if count := torch.cuda.device_count():
        return events.Gpus(count=count)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    missing = "no NVIDIA GPU or driver answers"
    missing = missing if visible is None else f"CUDA_VISIBLE_DEVICES is {visible!r}"
    return events.Gpus(missing=missing)


def gpus_for(environment: type[VecTask]) -> events.Gpus:
    """Find GPUs for an environment; `missing` names modules that it needs on a GPU and lacks."""
    gpus, lacking = find_gpus(), _missing_modules(environment)
    if not (gpus.count and lacking and "cuda" in environment.device_types):
        return gpus
    verb = "is" if len(lacking) == 1 else "are"
    missing = f"on a GPU it needs {' and '.join(lacking)}, which {verb} not installed"
    return gpus.model_copy(update={"missing": missing})


def device_types(environment: type[VecTask]) -> tuple[str, ...]:
    """Types of torch devices for an environment; no GPU where modules for it are missing."""
    without = {"cuda"} if _missing_modules(environment) else set()
    return tuple(kind for kind in environment.device_types if kind not in without)


def _missing_modules(environment: type[VecTask]) -> list[str]:
    """Missing `gpu_modules`, found without import: one that starts CUDA would forbid forks."""
    return [name for name in environment.gpu_modules if importlib.util.find_spec(name) is None]


def check_device(device: str) -> None:
    """Raise EurekaError for a device that this process cannot use."""
    gpus = find_gpus()
    kind, _, number = device.partition(":")
    if kind == "cuda" and int(number or 0) >= gpus.count:
        what = f"the worker was to run on {device!r}: {gpus.missing or f'torch finds {gpus.count}'}"
        raise EurekaError(what, f"see what `{command_line('doctor')}` says of devices")


def pack_kernels(folder: Path) -> bytes:
    """All files below a folder as safetensors: bytes (uint8) by path. A missing folder is empty."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    contents = {each.relative_to(folder).as_posix(): each.read_bytes() for each in files}
    return save({name: np.frombuffer(each, np.uint8) for name, each in contents.items()})

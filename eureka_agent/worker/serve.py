"""The worker's loop: it reads a command, acts, answers; a training goes on between commands."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError, EurekaError
from eureka_agent.protocol.bounds import KERNELS_FILE
from eureka_agent.protocol.commands import (
    Cancel,
    Command,
    DryRun,
    Evaluate,
    Film,
    GiveCredit,
    Measure,
    Open,
    Prepare,
    Prove,
    Save,
    ScoreTransitions,
    Shutdown,
    Train,
)
from eureka_agent.protocol.events import AllSaved, Event, Fault, Measured, Opened, Prepared
from eureka_agent.rewards import RewardSpecification
from eureka_agent.simulation.loading import LoadedEnvironment, describe, load_environment
from eureka_agent.simulation.user_modules import describe_error, error_place
from eureka_agent.task import Task, Variable
from eureka_agent.training.allocator import keep_freed_memory
from eureka_agent.training.environment_faults import RAISED_HINT, environment_code, loading_limit
from eureka_agent.training.gpu_failures import is_gpu_failure
from eureka_agent.training.memory import MEMORY_HINT, does_not_fit, is_out_of_memory
from eureka_agent.training.untrained import measure
from eureka_agent.training.written_fitness import with_written_fitness
from eureka_agent.worker.channel import Channel, File, ProtocolError
from eureka_agent.worker.dry_run import DryRunner
from eureka_agent.worker.evaluation_job import evaluate
from eureka_agent.worker.gpus import check_device, device_types, gpus_for
from eureka_agent.worker.kernel_files import KERNELS_FOLDER, pack_kernels
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward
from eureka_agent.worker.scoring import Scorer
from eureka_agent.worker.states import (
    CALL_SECONDS,
    RECORDED_ENVIRONMENTS,
    record_transitions,
    rehearse,
)
from eureka_agent.worker.training_job import Population

MAKING_SECONDS = 120.0
"""Timeout for loading an environment, and for making one of few rows."""
_SUBJECTS = {
    "prepare": "the training",
    "train": "the training",
    "evaluate": "the evaluation",
    "film": "the video",
    "prove": "the training",
    "open": "the environment",
}
_FITNESS_ROWS = 4096
"""Initial room for steps of a written fitness."""


class Worker:
    """One environment and task, and the driver's commands on them."""

    def __init__(self, channel: Channel, scratch: Path) -> None:
        """`scratch`: the only folder that it may write to, and where received files go."""
        torch.set_num_threads(1)  # before any operation: a fork must not meet a thread pool
        keep_freed_memory()
        self._channel = channel
        self._scratch = scratch
        # before there is anything that a reward should not see
        self._nursery = Nursery.start(channel.descriptors())
        self._device = "cpu"
        self._loaded: LoadedEnvironment | None = None
        self._task: Task | None = None
        self._dry_runner: DryRunner | None = None
        self._scorer: Scorer | None = None
        self._population: Population | None = None
        self._ran_generated_code = False

    def run(self) -> None:
        """Serve until `Shutdown`, the end of input, or a failure of all members' training."""
        while not self._channel.closed:
            population = self._population
            training = population is not None and population.busy
            try:
                command = self._channel.receive(0.0 if training else None)
            except ProtocolError as error:
                self._channel.send(Fault(job=None, message=error.message, hint=error.hint))
                continue
            if isinstance(command, Shutdown):
                return
            if command is not None:
                self._send(self._answer(command))
            elif training and population and not self._send(self._iterate(population)):
                return

    def _send(self, answers: Sequence[Event | File]) -> bool:
        """Send events and files; False when an event says that the worker cannot go on."""
        serving = True
        for answer in answers:
            if isinstance(answer, File):
                self._channel.send_file(answer)
            else:
                self._channel.send(answer)
                serving = serving and not (isinstance(answer, Fault) and answer.job is None)
        return serving

    def _iterate(self, population: Population) -> list[Event | File]:
        """Train one iteration. A simulator's failure breaks all members: it ends the worker."""
        try:
            return list(population.iterate())
        except EurekaError as error:
            return [_fault(None, error)]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (the boundary of one iteration; the traceback goes to standard error)
            return [self._defect("the training", None, error)]

    def _answer(self, command: Command) -> Sequence[Event | File]:
        """Answer a command with events. The worker goes on after any error."""
        job = getattr(command, "job", None)
        try:
            return self._act(command)
        except EurekaError as error:
            return [_fault(job, error, opening=isinstance(command, Open))]
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  (the boundary of one command; the traceback goes to standard error)
            subject = _SUBJECTS.get(command.type, f"the command {command.type!r}")
            return [self._defect(subject, job, error)]

    def _defect(self, what: str, job: str | None, error: BaseException) -> Fault:
        """A fault for an unforeseen error, with its place where that is the environment's code."""
        traceback.print_exc(file=sys.stderr)
        if is_out_of_memory(error):
            return Fault(job=job, message=does_not_fit(what, error), hint=MEMORY_HINT)
        if is_gpu_failure(error):  # also for other jobs: this process cannot use it any more
            return Fault(job=None, message=f"the GPU failed: {describe_error(error)}", gpu=True)
        place = error_place(error, None if self._loaded is None else self._loaded.folder)
        hint = RAISED_HINT if place else "this is a defect of the program: please report it"
        message = f"{what} failed: {place}{describe_error(error)}"
        return Fault(job=job, message=message, hint=hint, environment=bool(place))

    def _act(self, command: Command) -> Sequence[Event | File]:
        if isinstance(command, Open):
            return [self._open(command)]
        if self._loaded is None or self._task is None:
            raise EurekaError(f"{command.type!r} came before 'open'", "send 'open' first")
        if isinstance(command, DryRun):
            return [self._dry_runners(self._loaded, self._task)[0].run(command)]
        if isinstance(command, ScoreTransitions):
            return [self._dry_runners(self._loaded, self._task)[1].run(command)]
        if isinstance(command, GiveCredit):
            return [self._dry_runners(self._loaded, self._task)[1].credit(command)]
        if isinstance(command, Prepare):
            return self._prepare(self._loaded, self._task, command)
        if isinstance(command, Evaluate | Measure):
            if self._ran_generated_code:
                raise EurekaError(
                    "this worker has loaded a reward: it does not score",
                    "score in a worker of its own",
                )
            if isinstance(command, Measure):
                measurements = measure(self._loaded, self._task, scores=command.scores)
                return [Measured(job=command.job, measurements=measurements)]
            return self._evaluate(self._loaded, self._task, command)
        if isinstance(command, Film):
            return self._film(self._loaded, self._task, command)
        if isinstance(command, Prove):
            from eureka_agent.worker.proof_job import (
                prove,  # with libraries that no other job needs
            )

            self._ran_generated_code = True
            return prove(command, self._loaded, self._task, self._nursery)
        if self._population is None:
            raise EurekaError(f"{command.type!r} came before 'prepare'", "send 'prepare' first")
        if isinstance(command, Cancel):
            self._population.cancel(command.job)
        if isinstance(command, Save):
            return [*self._population.save(), AllSaved()]
        if isinstance(command, Train):
            self._ran_generated_code = True
            failure = self._population.submit(command)
            return [] if failure is None else [failure]
        return []

    def _open(self, command: Open) -> Opened:
        check_device(command.device)
        with loading_limit(MAKING_SECONDS, CALL_SECONDS):
            loaded = load_environment(command.environment)
        if command.fitness is not None:
            loaded = with_written_fitness(
                loaded, command.task, command.fitness, self._fitness_process
            )
        name, task = loaded.task(command.task)
        found = loaded.environment_class
        opened = Opened(
            description=describe(loaded, name),
            gpus=gpus_for(found),
            device_types=device_types(found),
        )
        if command.rehearse:
            self._dry_runners(loaded, task, rehearsed=True)
        self._loaded, self._task, self._device = loaded, task, command.device
        return opened

    def _fitness_process(
        self, reward: RewardSpecification, variables: Sequence[Variable], **vocabulary: Any
    ) -> RemoteReward:
        """Run a written fitness, which is generated code, in a process of its own."""
        return RemoteReward(self._nursery, reward, variables, _FITNESS_ROWS, **vocabulary)

    def _dry_runners(
        self, loaded: LoadedEnvironment, task: Task, rehearsed: bool = False
    ) -> tuple[DryRunner, Scorer]:
        if self._dry_runner is None or self._scorer is None:
            found = loaded.environment_class
            variables = found.all_variables()
            with environment_code(found, MAKING_SECONDS, "making the environment"):
                environment = found.create(RECORDED_ENVIRONMENTS, "cpu", 0, task.options)
            try:
                recorded = record_transitions(environment, variables)
                if rehearsed:
                    rehearse(environment, None if loaded.written is not None else task, recorded)
            finally:
                environment.close()
            descriptors = self._channel.descriptors()
            self._dry_runner = DryRunner(recorded, found, descriptors)
            self._scorer = Scorer(found, self._scratch, descriptors)
        return self._dry_runner, self._scorer

    def _evaluate(
        self, loaded: LoadedEnvironment, task: Task, command: Evaluate
    ) -> list[Event | File]:
        try:
            files, evaluated = evaluate(command, loaded, task, self._device, self._scratch)
        finally:
            self._delete_policies(command)
        return [*files, evaluated]

    def _film(self, loaded: LoadedEnvironment, task: Task, command: Film) -> list[Event | File]:
        if self._population is not None:
            raise EurekaError("this worker trains: it makes no videos", "use one of its own")
        from eureka_agent.worker.film_job import FilmJob  # with libraries that no other job needs

        # the rewards run in processes of their own, and yet their scores would not be trusted
        self._ran_generated_code = True
        try:
            files, filmed = FilmJob(command, loaded, task, self._scratch, self._nursery).run()
        finally:
            self._delete_policies(command)
        return [*files, filmed]

    def _delete_policies(self, command: Evaluate | Film) -> None:
        for policy in command.policies:
            (self._scratch / policy.policy).unlink(missing_ok=True)

    def _prepare(
        self, loaded: LoadedEnvironment, task: Task, command: Prepare
    ) -> list[Event | File]:
        if self._population is not None and self._population.busy:
            raise EurekaError("'prepare' came while a training runs", "wait for it, or cancel it")
        self._population = Population(
            loaded,
            task,
            command.settings,
            command.slots,
            self._device,
            self._scratch,
            command.snapshot_s,
            self._nursery,
            command.iteration_limit_s,
        )
        if not command.kernels:
            return [Prepared()]
        kernels = pack_kernels(self._scratch / KERNELS_FOLDER)
        return [File(KERNELS_FILE, kernels), Prepared()]


def _fault(job: str | None, error: EurekaError, opening: bool = False) -> Fault:
    """The event for an error of the user's. `opening`: a load error then blames no environment."""
    environment = isinstance(
        error, EnvironmentFaultError if opening else (EnvironmentFaultError, EnvironmentLoadError)
    )
    return Fault(job=job, message=error.message, hint=error.hint, environment=environment)

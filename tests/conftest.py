"""Records that many tests need: a task description, attempts at every stage."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import warm_programs
from outcomes import make_outcome

from eureka_agent.records import (
    Attempt,
    Operator,
    Proposal,
    Stage,
    TaskDescription,
    VariableSpec,
)
from eureka_agent.rewards import CodeReward
from eureka_agent.sandbox.worker_environment import SAME_PRODUCTS

pytest_plugins = ["browsers", "worker_processes"]

REWARD = """def compute_reward(cart_position, actions):
    centred = -cart_position.abs()
    effort = -0.01 * actions.square().sum(dim=-1)
    return centred + effort, {"centred": centred, "effort": effort}
"""


# trainings in the tests' own process calculate as in a worker; before torch is imported
os.environ["MKL_CBWR"] = SAME_PRODUCTS
# one wall for all tests that do not name one, whatever this machine has
os.environ.setdefault("EUREKA_SANDBOX", "process")
# commands in hints are named the same whatever is on this machine's PATH
os.environ["EUREKA_PROGRAM"] = "eureka"
# a video takes seconds; the tests of videos turn it on
os.environ["EUREKA_VIDEO"] = "off"
# runs are signed with a secret of the tests' own, not with the person's
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="eureka-tests-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

# What started the tests may ignore a signal (nohup, a job in the background), and every program
# that they start would inherit that. One that is handled by doing nothing is still ignored here,
# and has its usual effect on them.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

_REAL_STARTS = ("adversarial", "sandbox")
"""Folders of which all tests are marked `real_starts`: a worker meets a wall as it is started."""
warm_programs.STARTS.install()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Programs are forked from a warm parent, except in tests about starts."""
    marked = item.get_closest_marker("real_starts") is not None
    warm_programs.STARTS.forking = not (marked or os.environ.get("EUREKA_TESTS_ALL") == "1")
    return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `gpu` run wherever torch finds a GPU, those marked `docker` wherever an engine
    answers, those marked `browser` wherever there is one. The files with the most long tests come
    first, so that none is left alone at the end."""
    for item in items:
        if item.path.relative_to(Path(__file__).parent).parts[0] in _REAL_STARTS:
            item.add_marker("real_starts")
    long = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -long[item.path])
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu:
        import torch  # most tests need none

        if not torch.cuda.is_available():
            for item in on_gpu:
                item.add_marker(
                    pytest.mark.skip(reason="needs a GPU: torch.cuda.is_available() is False")
                )
    in_docker = [item for item in items if item.get_closest_marker("docker")]
    # a required engine may not be absent: the tests run, and fail
    if in_docker and os.environ.get("EUREKA_REQUIRE_DOCKER") != "1":
        reason = why_no_engine()
        for item in in_docker if reason else ():
            item.add_marker(pytest.mark.skip(reason=reason))
    in_browser = [item for item in items if item.get_closest_marker("browser")]
    from browsers import why_no_browser  # a plugin, which pytest imports first

    if in_browser and os.environ.get("EUREKA_REQUIRE_BROWSER") != "1":
        reason = why_no_browser()
        for item in in_browser if reason else ():
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Keep the collector from looking through what was imported, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


def why_no_engine() -> str:
    """Why tests of the Docker wall cannot run here; empty where they can."""
    from eureka_agent.errors import WallError
    from eureka_agent.sandbox.docker.engine import connect

    try:
        connect().close()
    except WallError as error:
        return f"needs a Docker engine (.ci/engine start): {error.message}"
    return ""


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Keep the garbage collector off in tests of text that is nested too deeply to be parsed.

    Parsing it makes hundreds of containers on the way to the recursion limit, so the collector may
    run a few frames below it. It would then finalise what other tests left, fail by RecursionError,
    and pytest would count that against the current test.
    """
    gc.collect()
    gc.freeze()  # what is left is used: the next collection need not look at it
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def description() -> TaskDescription:
    """A small invented task."""
    return TaskDescription(
        environment="cart",
        task="centre",
        sentence="keep the cart at the centre",
        doc="A cart on a rail.",
        fitness_doc="seconds within 0.1 m of the centre",
        fitness_unit="s",
        fitness_reduction="sum",
        success_fitness=8.0,
        variables=(
            VariableSpec(
                name="actions", shape=(1,), unit="1", frame="joint", doc="action", range=(-1.0, 1.0)
            ),
            VariableSpec(
                name="cart_position",
                shape=(),
                unit="m",
                frame="world",
                doc="position of the cart along the rail",
            ),
            VariableSpec(
                name="secret",
                shape=(),
                unit="1",
                frame="-",
                doc="for the fitness alone",
                private=True,
            ),
        ),
        num_observations=2,
        num_actions=1,
        control_dt=0.02,
        max_episode_length=500,
        termination_causes=("left_the_rail",),
        env_steps=10_000,
        num_envs=16,
        training_overrides={},
        human_reward=REWARD,
        sparse_reward=REWARD,
        fingerprint="0" * 64,
    )


@pytest.fixture
def make_attempt() -> Callable[..., Attempt]:
    """A factory of attempts: trained with `fitness`, or at the stage given."""

    def make(iteration: int, sample: int, fitness: float | None = None, **fields: Any) -> Attempt:
        stage = fields.pop("stage", Stage.TRAINED if fitness is not None else Stage.REJECTED)
        revision = fields.pop("revision", 0)
        return Attempt(
            id=f"{iteration + 1}-{sample + 1:02d}" + (f"-r{revision}" if revision else ""),
            iteration=iteration,
            sample=sample,
            revision=revision,
            proposal=Proposal(
                reward=CodeReward(source=REWARD, author="offline"),
                reasoning="because",
                operator=Operator.FRESH,
            ),
            stage=stage,
            seed=7,
            outcome=None if fitness is None else make_outcome(fitness),
            **fields,
        )

    return make

"""The driver believes nothing that a bad worker says: it kills and names the worker, and the jobs
end in a result."""

from __future__ import annotations

import asyncio
import textwrap
import threading
import time
from pathlib import Path

import pytest
from script_wall import ScriptWall
from training_pool import TrainingPool

from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.boundary.commands import DryRun
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import WorkerDiedError, WorkerFaultError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.evaluator import Evaluator
from eureka_agent.fleet.jobs import Problem, TrainingResult
from eureka_agent.sandbox.client import WorkerClient
from eureka_agent.sandbox.process_wall import ProcessHandle
from eureka_agent.settings import TrainingSettings

SETTINGS = TrainingSettings(
    env_steps=256, num_envs=8, horizon=16, hidden_sizes=(16,), epochs=1, checkpoints=1
)
SECONDS = 20.0

BEGINS = """
import json, struct, sys, time
commands, out = sys.stdin, sys.stdout.buffer

def say(**event):
    out.write(json.dumps(event).encode() + b"\\n")
    out.flush()

def give(name, content, size=None):
    say(type="file", name=name, size=len(content) if size is None else size)
    out.write(content)
    out.flush()

description = dict(environment="x", task="y", sentence="s", doc="d", fitness_doc="f", fitness_unit="s", fitness_reduction="sum",
    success_fitness=None, variables=[], num_observations=1, num_actions=1, control_dt=0.1, max_episode_length=10, termination_causes=[],
    env_steps=100, num_envs=8, training_overrides={}, human_reward=None, sparse_reward=None, fingerprint="0" * 64)
point = dict(env_steps=128, fitness=1.0, episode_length=1.0, episodes=1, reward=1.0, components={}, component_magnitudes={},
    component_deviations={}, terminations={}, action_saturation=0.0, action_std=1.0, learning_rate=0.1, kl=0.0, entropy=0.0, value_loss=0.0,
    policy_loss=0.0, explained_variance=0.0)
checkpoint = dict(env_steps=256, fitness=9.0, episode_length=1.0, episodes=1, reward=1.0, components={})
outcome = dict(env_steps=256, seconds=1.0, checkpoints=[checkpoint], best_checkpoint=0, training_fitness=9.0)

def train(job):
    pass

for line in commands:
    command = json.loads(line)
    kind = command["type"]
    if kind == "open":
        say(type="opened", description=description)
    elif kind == "prepare":
        say(type="prepared")
    elif kind == "shutdown":
        break
    elif kind in ("dry_run", "score_transitions", "train"):
        job = command["job"]
        time.sleep(0.01)
"""


def bad_wall(code: str) -> ScriptWall:
    """Workers that answer as others do until they get a job, and then run this code."""
    return ScriptWall(BEGINS + textwrap.indent(textwrap.dedent(code), "        "))


async def trained(
    code: str, tmp_path: Path, timeout_s: float = 2.0
) -> tuple[TrainingResult, ScriptWall]:
    """Result of a training on such a worker. The code runs twice, as a dead worker is replaced
    once."""
    wall = bad_wall(code)
    pool = TrainingPool(
        wall, "cartpole", None, SETTINGS, 1, 1, tmp_path / "scratch", timeout_s=timeout_s
    )
    try:
        async with asyncio.timeout(SECONDS):
            return await pool.train("job", given_reward("x"), 0), wall
    finally:
        await pool.close()


POLICY = (
    "give('p', {content})\nsay(type='trained', job=job, outcome=outcome, policies={{0: 'p'}})\n"
)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("say(type='trained', job=job, outcome=outcome, policies={0: '../../etc/passwd'})", "did not send it"),
        ("say(type='trained', job=job, outcome=outcome, policies={7: 'p'})", "for an outcome at 0"),
        ("say(type='trained', job=job, outcome=outcome, policies={i: 'p' for i in range(5000)})", "broke the protocol"),
        ("give('p', struct.pack('<Q', 8) + b'{}      ')\nsay(type='trained', job=job, outcome=outcome, policies={0: 'p', 1: 'p'})", "of 1"),
        ("out.write(b'{\"type\":\"evaluated\",\"job\":\"a\",\"scores\":[{}' + b',{}' * 500_000 + b']}\\n')\nout.flush()", "not an event"),
        ("give('../p', b'x')", "not an event"),
        ("give('p', b'x', size=1 << 40)", "not an event"),
        ("give('p', b'x', size=1000)", "no sign of life"),
        (POLICY.format(content="b'cposix\\nsystem\\n(Vtrue\\ntR.'"), "safetensors"),
        ("for i in range(2000):\n    give(f'f{i}', b'x')", "that nobody asked for"),
        ("say(type='saved', job=job, snapshot='s', iterations=-5)\nsay(type='nonsense')", "not an event"),
        ("say(type='fault', job=None, message='the end')", "the end"),
        ("out.write(b'\\xff\\xfe\\0\\n')\nout.flush()", "not an event"),
        ("out.close()\ntime.sleep(60)", ""),
        ("time.sleep(60)", "no sign of life"),
        ("import os, signal\nfor n in range(1, 65):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n    except Exception:\n        pass\nwhile True:\n    pass", "no sign of life"),
    ],
)  # fmt: skip
async def test_a_worker_that_lies_is_killed_and_its_job_fails_by_name(
    code: str, said: str, tmp_path: Path
) -> None:
    result, wall = await trained(code, tmp_path)
    assert result.outcome is None
    assert result.failure_code == "worker-died"
    assert said in result.failure_reason
    assert result.failure_reason.replace("\n", "").isprintable()
    assert (result.retries, wall.started) == (1, 2)
    assert not list((tmp_path / "scratch").glob("worker-*"))


async def test_events_of_jobs_that_are_not_its_own_change_nothing(tmp_path: Path) -> None:
    result, _ = await trained(
        """
        say(type="progress", points={"another": [point]})
        say(type="saved", job="another", snapshot="s", iterations=0)
        say(type="rung_reached", job="another", env_steps=1, policy="p")
        say(type="trained", job="another", outcome=outcome, policies={0: "p"})
        say(type="training_failed", job="another", code="raised", reason="x", env_steps=0)
        say(type="fault", job="another", message="x")
        say(type="dry_run_done", job=job, findings=[], seconds=0.0)
        say(type="training_failed", job=job, code="raised", reason="\\x1b[2J" * 100_000, env_steps=0)
        """,
        tmp_path,
    )
    assert (result.failure_code, result.retries) == ("raised", 0)
    assert result.failure_reason.isprintable()
    assert len(result.failure_reason) < 20_000


@pytest.mark.parametrize("field", ["components"])
async def test_components_with_new_names_in_a_later_point_are_a_violation(
    tmp_path: Path, field: str
) -> None:
    """Each name is a column of the curves' file and a row in every table."""
    later = f'say(type="progress", points={{job: [point, dict(point, {field}={{"new": 1.0}})]}})'
    result, _ = await trained(later, tmp_path)
    assert (result.outcome, result.failure_code) == (None, "worker-died")
    assert "different components" in result.failure_reason


async def test_more_curve_points_than_there_are_iterations_are_a_violation(tmp_path: Path) -> None:
    result, _ = await trained(
        'for _ in range(3):\n    say(type="progress", points={job: [point] * 50})', tmp_path
    )
    assert result.failure_code == "worker-died"
    assert "points" in result.failure_reason
    assert len(result.points) < 2000


@pytest.mark.parametrize(
    ("code", "calls"),
    [
        ("say(type='dry_run_done', job='another', findings=[], seconds=0.0)\ntime.sleep(60)", 2),
        pytest.param("while True:\n    say(type='prepared')", 2),
        ("out.write(b'x' * (40 << 20))\nout.flush()\ntime.sleep(60)", 2),
        ("say(type='dry_run_done', job=job, findings=[{'code': '[/red]', 'severity': 'error', 'message': ''}], seconds=0.0)", 2),
        ("say(type='dry_run_done', job=job, findings=[{'code': 'D302', 'severity': 'error', 'message': '', 'line': -7}], seconds=0.0)", 2),
    ],
    ids=["another job's", "a flood of events", "a line without end", "an invented code", "a line that is none"],
)  # fmt: skip
async def test_a_dry_run_of_such_a_worker_is_a_finding(
    code: str, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eureka_agent.fleet.dry_runner._GRACE_SECONDS", 0.5)
    wall = bad_wall(code)
    runner = DryRunner(wall, Problem("cartpole"), tmp_path / "scratch", 0.5)
    began = time.monotonic()
    try:
        async with asyncio.timeout(SECONDS):
            findings = await runner.dry_run(given_reward("x"))
    finally:
        await runner.close()
    assert [finding.code for finding in findings] == ["D312"]
    assert wall.started == calls
    assert time.monotonic() - began < 15
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize(
    "answer", ["returns=[]", "returns=[{'best': 1e999}]", "returns=[{'best': 1.0}], totals=[1.0]"]
)
async def test_scores_that_no_reward_can_give_are_none(answer: str, tmp_path: Path) -> None:
    """Scores are compared with those of other rewards: with numbers of its choice, a reward could
    have its successors rejected."""
    (tmp_path / "episodes.npz").write_bytes(b"x")
    # a file comes before the command: its header is a line, its one byte begins the next
    code = f"say(type='scored', job=job, {answer})"
    wall = bad_wall(code)
    wall._script = wall._script.replace("json.loads(line)", "json.loads(line.removeprefix('x'))")
    runner = DryRunner(wall, Problem("cartpole"), tmp_path / "scratch", 2.0)
    try:
        async with asyncio.timeout(SECONDS):
            scored = await runner.score(given_reward("x"), {"a": tmp_path / "episodes.npz"})
    finally:
        await runner.close()
    assert scored.reason
    assert scored.returns == ()


@pytest.mark.parametrize(
    "answer",
    [
        "type='dry_run_done', findings=[], seconds=0.0",
        "type='evaluated', scores=[]",
        "type='evaluated', scores=[dict(evaluation=dict(episodes=[], seed=0))]",
        "type='evaluated', scores=[dict(evaluation=dict(episodes=[episode], seed=0))]",
    ],
)
async def test_an_evaluation_that_is_none_is_a_fault(answer: str, tmp_path: Path) -> None:
    (tmp_path / "policy").write_bytes(b"x")
    wall = bad_wall(
        f"episode = dict(fitness=1.0, length=1, ended_by='time_out')\nsay(job=job, {answer})"
    )
    # a file comes before the command: its header is a line, its one byte begins the next
    wall._script = wall._script.replace("json.loads(line)", "json.loads(line.removeprefix('x'))")
    wall._script = wall._script.replace('"train")', '"train", "evaluate")')
    evaluator = Evaluator(wall, Problem("cartpole"), tmp_path / "scratch", 2.0)
    try:
        async with asyncio.timeout(SECONDS):
            with pytest.raises(WorkerFaultError):
                await evaluator.evaluate(tmp_path / "policy", 0, 2)
    finally:
        await evaluator.close()


@pytest.mark.slow
async def test_one_that_fills_its_pipe_and_dies_does_not_hold_up_the_driver(tmp_path: Path) -> None:
    """Nobody reads what it left in the pipe."""
    for _ in range(5):
        client = await WorkerClient.start(bad_wall("pass"), tmp_path)
        async with asyncio.timeout(SECONDS):
            await client.open("cartpole", None)
            client._reader._task.cancel()  # as after a violation
            await asyncio.wait({client._reader._task})
            assert isinstance(client._handle, ProcessHandle)
            await client.close()
    client = await WorkerClient.start(bad_wall("out.write(b'x' * (64 << 20))"), tmp_path)
    async with asyncio.timeout(SECONDS):
        await client.open("cartpole", None)
        await client.send(DryRun(job="a", reward=given_reward("x"), timeout_s=1.0))
        with pytest.raises(WorkerDiedError):
            await client.receive(15.0)
        await client.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "nothing",
    [
        "say(type='progress', points={job: []})",
        "say(type='saved', job=job, snapshot='s', iterations=7)",
        "give('p', b'x')\n    say(type='rung_reached', job=job, env_steps=128, policy='p')",
        "say(type='trained', job='another', outcome=outcome, policies={0: 'p'})",
        "say(type='prepared')",
    ],
)
async def test_what_says_nothing_of_a_job_is_no_sign_of_life(nothing: str, tmp_path: Path) -> None:
    """Such events could go on without end, and the driver would wait for ever."""
    result, _ = await trained(f"while True:\n    {nothing}\n    time.sleep(0.05)", tmp_path, 0.5)
    assert result.failure_code == "worker-died"
    assert "no sign of life" in result.failure_reason


@pytest.mark.parametrize(
    ("code", "policies", "said"),
    [
        ("reach(128)\nreach(128)", [128], "at 128 env steps, which is no rung"),
        ("reach(192)\nreach(128)\nreach(192)", [192, 128], "at 192 env steps, which is no rung"),
        ("reach(127)", [], "at 127 env steps, which is no rung"),
        ("reach(-128)", [], "which is no rung"),
        ("reach(10**4299)", [], "which is no rung"),
        ("reach(10**5000)", [], "not an event"),
        ("say(type='rung_reached', job=job, env_steps=128, policy='p')", [], "did not send it"),
        ("reach(128, b'cposix\\nsystem\\n(Vtrue\\ntR.')", [], "safetensors"),
        ("reach(128, struct.pack('<Q', 1 << 60))", [], "safetensors"),
    ],
)
@pytest.mark.parametrize("stored", [True, False])
async def test_a_worker_gives_one_policy_at_each_rung_and_none_elsewhere(
    code: str, policies: list[int], said: str, stored: bool, tmp_path: Path
) -> None:
    """Each of two workers may give them, as the second begins with the first step."""
    begins = """
sys.set_int_max_str_digits(0)
names = iter("pqr")

def reach(env_steps, content=struct.pack("<Q", 8) + b"{}      "):
    name = next(names)
    give(name, content)
    say(type="rung_reached", job=job, env_steps=env_steps, policy=name)

"""
    asked: list[tuple[int, bool]] = []
    pool = TrainingPool(
        *(bad_wall(begins + code), "cartpole", None, SETTINGS, 1, 1, tmp_path / "scratch"),
        timeout_s=2.0,
        snapshots=SnapshotStore(tmp_path) if stored else None,
    )
    try:
        async with asyncio.timeout(SECONDS):
            result = await pool.train(
                *("job", given_reward("x"), 0),
                rungs=(128, 192),
                on_rung=lambda env_steps, policy: asked.append((env_steps, policy.is_file())),
            )
    finally:
        await pool.close()
    assert (result.failure_code, result.retries) == ("worker-died", 1)
    assert said in result.failure_reason
    assert len(result.failure_reason) < 500
    assert asked == [(env_steps, True) for env_steps in 2 * policies]
    if stored:
        left = {path.name for path in tmp_path.glob(".snapshots/*")}
        assert left == {f"job.{env_steps}.safetensors" for env_steps in policies}


async def test_a_policy_that_arrives_while_its_training_is_cancelled_is_passed_on_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
    if job.endswith(":first"):
        give("p", b"x")
        say(type="rung_reached", job=job, env_steps=128, policy="p")
    else:
        say(type="training_failed", job=job, code="raised", reason="x", env_steps=0)
    """
    arrived, cancelled, asked = threading.Event(), threading.Event(), []

    def check(path: Path) -> None:
        arrived.set()
        assert cancelled.wait(SECONDS)

    monkeypatch.setattr("eureka_agent.fleet.training_worker.check_policy", check)
    pool = TrainingPool(bad_wall(code), "cartpole", None, SETTINGS, 2, 1, tmp_path / "scratch")
    try:
        async with asyncio.timeout(SECONDS):
            rungs, reward = (128,), given_reward("x")
            first = asyncio.create_task(
                pool.train("first", reward, 0, 0, rungs, lambda *policy: asked.append(policy))
            )
            await asyncio.to_thread(arrived.wait)
            first.cancel()
            await asyncio.wait({first})
            cancelled.set()
            later = await pool.train("later", reward, 0)  # its events come after the policy
    finally:
        cancelled.set()
        await pool.close()
    assert (first.cancelled(), later.failure_code, later.retries) == (True, "raised", 0)
    assert asked == []


async def test_events_that_nobody_receives_wait_in_the_worker(tmp_path: Path) -> None:
    """Nobody receives events between two jobs, and a bad worker would fill the driver's memory."""
    code = "while True:\n    say(type='opened', description=description | {'doc': 'x' * (4 << 20)})"
    client = await WorkerClient.start(bad_wall(code), tmp_path)
    try:
        async with asyncio.timeout(SECONDS):
            await client.open("cartpole", None)
            await client.send(DryRun(job="a", reward=given_reward("x"), timeout_s=1.0))
            await asyncio.sleep(1.5)
            assert 0 < client._reader._events.qsize() <= 4
            for _ in range(20):  # and goes on when somebody does
                await client.receive(10.0)
    finally:
        await client.close()

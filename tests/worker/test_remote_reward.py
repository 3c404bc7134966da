"""A reward in a process of its own: the same numbers as here, and whatever it does is its own
failure alone."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import ProcessStartError, RewardLoadError
from eureka_agent.simulation.user_modules import TimeLimitError
from eureka_agent.task import Constant, Variable
from eureka_agent.training.reward import RewardContractError, RewardFunction
from eureka_agent.worker import remote_reward
from eureka_agent.worker.nursery import Nursery
from eureka_agent.worker.remote_reward import RemoteReward

VARIABLES = (
    Variable("height", (), "m", "world", "height"),
    Variable("velocity", (3,), "m/s", "world", "velocity"),
    Variable("goal", (2, 2), "m", "world", "goal"),
    Variable("secret", (), "1", "-", "for the fitness", private=True),
)
ROWS = 50
GOOD = """import torch

scale = torch.tensor([0.5, 2.0, 1.0])

def compute_reward(velocity, previous_height, goal):
    forward = (velocity * scale).sum(dim=-1).tanh()
    low = torch.exp(-previous_height.abs())
    near = torch.linalg.vector_norm(goal.flatten(1), dim=1)
    return forward + 0.1 * low - near, {"forward": forward, "low": low, "near": near, "share": 0.5}
"""
Remote = Callable[..., RemoteReward]


@pytest.fixture
def remote() -> Iterator[Remote]:
    """Makes rewards in processes of their own, which are gone with the test."""
    nursery = Nursery.start(())

    def make(source: str, rows: int = ROWS, *, trusted: bool = False, **rest: Any) -> RemoteReward:
        reward = given_reward(source, trusted=trusted)
        return RemoteReward(nursery, reward, VARIABLES, rows, **rest)

    yield make
    nursery.close()


def values(rows: int = ROWS, seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    made = {}
    for variable in VARIABLES:
        for name in (variable.name, f"previous_{variable.name}"):
            made[name] = torch.randn(rows, *variable.shape, generator=generator)
    return made


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("rows", [1, 7, ROWS, 3 * ROWS, 5])
def test_the_numbers_are_those_of_the_same_reward_here(remote: Remote, rows: int) -> None:
    """Bit for bit, with fewer and with more steps than were announced."""
    there, here = remote(GOOD), RewardFunction.from_source(GOOD, VARIABLES)
    assert there.arguments == here.arguments == ("velocity", "previous_height", "goal")
    for seed in (0, 1):
        total, components = there.begin(values(rows, seed), 5.0)()
        expected_total, expected = here(values(rows, seed))
        assert torch.equal(total, expected_total)
        assert list(components) == list(expected)
        assert all(torch.equal(components[name], expected[name]) for name in expected)


def test_several_work_side_by_side(remote: Remote) -> None:
    slow = (
        "import time\ndef compute_reward(height):\n    time.sleep(0.5)\n    return height,"
        " {'height': height}\n"
    )
    rewards = [remote(slow) for _ in range(4)]
    began = time.monotonic()
    waits = [reward.begin(values(), 5.0) for reward in rewards]
    results = [wait() for wait in waits]
    assert time.monotonic() - began < 4 * 0.5
    assert all(torch.equal(total, values()["height"]) for total, _ in results)


def test_results_stay_when_the_next_call_is_made(remote: Remote) -> None:
    reward = remote("def compute_reward(height):\n    return height, {'height': height}\n")
    first, _ = reward.begin(values(seed=0), 5.0)()
    reward.begin(values(seed=1), 5.0)()
    assert torch.equal(first, values(seed=0)["height"])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def compute_reward(heigt):\n    return heigt, {}", "reads 'heigt', which is no variable"),
        ("x = 1", "defines no function 'compute_reward'"),
        ("1 / 0\ndef compute_reward(height):\n    return height, {}", "line 1: ZeroDivisionError"),
        ("def compute_reward(height) return", "not valid Python"),
        ("import os\nos._exit(7)\ndef compute_reward(height):\n    return height, {}", "ended by itself with exit status 7"),
    ],
)  # fmt: skip
def test_a_source_that_does_not_load_says_why(remote: Remote, source: str, message: str) -> None:
    with pytest.raises(RewardLoadError, match=message):
        remote(source)


def test_a_persons_own_baseline_may_read_private_variables(remote: Remote) -> None:
    reward = remote(
        "def compute_reward(secret):\n    return secret, {'secret': secret}\n", trusted=True
    )
    assert torch.equal(reward.begin(values(), 5.0)()[0], values()["secret"])


def test_its_process_has_constants_and_helpers_and_remembers_nothing(remote: Remote) -> None:
    source = """calls = []
def compute_reward(height, goal, gain):
    calls.append(1)
    turned = quat_rotate(goal.flatten(1), height.new_tensor([[1.0, 0.0, 0.0]]).expand(len(height), 3))
    return gain * len(calls) * turned[:, 0], {}
"""
    given = values()
    given["goal"] = torch.tensor([[0.0, 0.0], [0.0, 1.0]]).expand(ROWS, 2, 2)
    # (0, 0, 0, 1) is half a turn about z where the real part comes first, and no turn where it
    # comes last
    for order, forward in (("wxyz", -1.0), ("xyzw", 1.0)):
        reward = remote(source, constants=(Constant("gain", 3.0),), quaternion_order=order)
        assert reward.arguments == ("height", "goal")
        for _ in range(2):
            assert reward.begin(given, 5.0)()[0].tolist() == [3.0 * forward] * ROWS


def test_a_top_level_without_end_is_ended(remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_reward, "LOADING_SECONDS", 0.5)
    with pytest.raises(TimeLimitError, match=r"longer than 0.5 s"):
        remote("while True:\n    pass\ndef compute_reward(height):\n    return height, {}")


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ("return height", "contract", r"line 3: returned Tensor, expected \(total, components\)"),
        ("return height, {'n' * 90: height}", "contract", "1 to 80 visible characters"),
        ("return height, {str(i): height for i in range(101)}", "contract", "there are 101 components, expected at most 100"),
        ("return height / missing, {}", "raised", "line 3: NameError: name 'missing'"),
        ("return torch.zeros(10**12), {}", "raised", "line 3: RuntimeError"),
        ("raise ValueError('x' * 10_000_000)", "raised", "line 3: ValueError: xxx"),
        ("os._exit(9)", "raised", "ended by itself with exit status 9"),
        ("os.kill(os.getpid(), 11)", "raised", "was ended by SIGSEGV"),
        ("mmap.mmap(-1, 4096, prot=7)", "raised", "which the wall forbids"),
        ("raise KeyboardInterrupt", "raised", "ended by itself"),
    ],
)  # fmt: skip
def test_what_fails_is_told_and_the_next_call_is_another(
    remote: Remote, body: str, code: str, message: str
) -> None:
    reward = remote(f"import mmap, os, torch\ndef compute_reward(height):\n    {body}\n")
    neighbour = remote(GOOD)
    for _ in range(2):  # also of one whose process is gone
        with pytest.raises(RewardContractError, match=message) as caught:
            reward.begin(values(), 5.0)()
        assert caught.value.code == code
    assert torch.equal(
        neighbour.begin(values(), 5.0)()[0],
        RewardFunction.from_source(GOOD, VARIABLES)(values())[0],
    )


@pytest.mark.parametrize(
    "body",
    ["while True: pass", "import time; time.sleep(100)", "torch.ones(8000, 8000).matrix_exp()"],
)
def test_a_call_without_end_is_ended_even_within_torch(remote: Remote, body: str) -> None:
    reward = remote(
        f"import torch\ndef compute_reward(height):\n    {body}\n    return height, {{}}\n"
    )
    began = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"longer than 0.3 s"):
        reward.begin(values(), 0.3)()
    assert time.monotonic() - began < 3.0
    with pytest.raises(RewardContractError, match="was ended by SIGKILL"):
        reward.begin(values(), 5.0)()


def test_what_it_does_to_torch_and_to_its_inputs_stays_with_it(remote: Remote) -> None:
    """It patches torch, writes into its arguments behind autograd's back, and looks through its
    callers' frames."""
    hostile = """import gc, sys, torch
torch.Tensor.tanh = lambda self: self * 0
torch.exp = None
torch.set_default_dtype(torch.float64)
torch.set_float32_matmul_precision("medium")

def compute_reward(velocity, previous_height, goal):
    velocity.data.fill_(7.0)
    goal.numpy()[:] = 7.0
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, torch.Tensor):
                value.detach().fill_(7.0)
        frame = frame.f_back
    for value in gc.get_objects():
        if type(value) is torch.Tensor and value.is_floating_point() and not value.is_inference():
            value.data.fill_(7.0)
    return torch.zeros(len(velocity), dtype=torch.float32), {}
"""
    given = values()
    expected = {name: value.clone() for name, value in given.items()}
    mine, neighbour = remote(hostile), remote(GOOD)
    precision = torch.get_float32_matmul_precision()
    for _ in range(2):
        mine.begin(given, 5.0)()
        total, _ = neighbour.begin(given, 5.0)()
        assert torch.equal(total, RewardFunction.from_source(GOOD, VARIABLES)(expected)[0])
        assert all(torch.equal(given[name], expected[name]) for name in given)
    assert torch.get_float32_matmul_precision() == precision
    assert torch.get_default_dtype() == torch.float32


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage",
        b"",
        b'{"code": "load", "message": ""}',
        b'{"code": "called", "names": [1, 2]}',
        b'{"code": "called", "names": [' + b",".join(b'"%d"' % i for i in range(999)) + b"]}",
        b'{"code": "called", "names": ["' + b"x" * 70_000 + b'"]}',
        b"[" * 60_000,
        b'{"code": "none", "message": "", "hint": ""}',
    ],
    ids=lambda answer: answer[:40].decode(),
)
def test_one_that_speaks_for_its_process_is_not_believed(remote: Remote, answer: bytes) -> None:
    """Descriptor 3 is its way to the trainer; it writes there before its process does."""
    source = f"""import os, struct
def compute_reward(height):
    os.write(3, struct.pack("!I", {len(answer)}) + {answer!r})
    return height, {{}}
"""
    reward = remote(source)
    with pytest.raises(RewardContractError):
        reward.begin(values(), 5.0)()


@pytest.mark.parametrize(
    "arguments", [["secret"], ["previous_secret"], ["nothing"], ["height", "height"], []], ids=str
)
def test_one_that_asks_for_what_its_source_may_not_read_is_refused(
    remote: Remote, arguments: list[str]
) -> None:
    answer = json.dumps({"code": "loaded", "names": arguments}).encode()
    source = f"""import os, struct
os.write(3, struct.pack("!I", {len(answer)}) + {answer!r})
def compute_reward(height):
    return height, {{}}
"""
    with pytest.raises(RewardLoadError, match="no answer that can be read"):
        remote(source)


def test_it_has_no_descriptors_but_its_own(remote: Remote) -> None:
    """None of the worker's files, pipes and sockets: what a descriptor leads to can be used without
    opening anything."""
    secret, other = os.pipe()
    os.set_inheritable(secret, True)
    nursery = Nursery.start(())
    try:
        source = """import errno, os
def _there(descriptor):
    try:
        os.lseek(descriptor, 0, os.SEEK_CUR)
    except OSError as error:
        return error.errno != errno.EBADF
    return True

found = [descriptor for descriptor in range(4096) if _there(descriptor)]

def compute_reward(height):
    return height, {str(descriptor): height for descriptor in found}
"""
        _, components = RemoteReward(nursery, given_reward(source), VARIABLES, ROWS).begin(
            values(), 5.0
        )()
    finally:
        nursery.close()
        os.close(secret)
        os.close(other)
    assert list(components) == ["0", "1", "2", "3"]


def test_a_machine_without_room_for_a_process_costs_that_reward_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is no RewardLoadError, which would be the reward's own fault; before and after it the
    nursery serves others."""
    fork, left = os.fork, [2]  # the nursery and a first reward

    def full() -> int:
        left[0] -= 1
        if left[0] == -1:
            raise BlockingIOError(errno.EAGAIN, "no process is left")
        return fork()

    monkeypatch.setattr(os, "fork", full)
    nursery = Nursery.start(())
    try:
        first = RemoteReward(nursery, given_reward(GOOD), VARIABLES, ROWS)
        with pytest.raises(ProcessStartError, match=os.strerror(errno.EAGAIN)) as caught:
            RemoteReward(nursery, given_reward(GOOD), VARIABLES, ROWS)
        assert not isinstance(caught.value, RewardLoadError)
        assert "--slots" in caught.value.hint
        third = RemoteReward(nursery, given_reward(GOOD), VARIABLES, ROWS)
        for reward in (first, third):
            assert reward.begin(values(), 5.0)()[0].isfinite().all()
    finally:
        nursery.close()


def test_all_end_with_the_nursery(remote: Remote) -> None:
    nursery = Nursery.start(())
    rewards = [RemoteReward(nursery, given_reward(GOOD), VARIABLES, ROWS) for _ in range(3)]
    pids = [reward._process.pid for reward in rewards]
    rewards[0].close()
    assert [alive(pid) for pid in pids] == [False, True, True]
    rewards[0].close()
    nursery.close()
    deadline = time.monotonic() + 5.0
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(map(alive, pids))

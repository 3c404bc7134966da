"""Every finding of the dry run, from rewards run by a real worker on the cartpole."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from reward_codes import CODES

from eureka_agent.boundary.bounds import LONGEST_FINDING
from eureka_agent.designer.interface import given_reward
from eureka_agent.errors import ProcessStartError
from eureka_agent.fleet.dry_runner import DryRunner
from eureka_agent.fleet.jobs import Problem
from eureka_agent.records import Finding
from eureka_agent.resources import resource_folder
from eureka_agent.rewards import baseline
from eureka_agent.sandbox.process_wall import ProcessWall
from eureka_agent.worker.dry_run import run_in_child

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEAD = (
    "import mmap, os, time, torch\ndef compute_reward(pole_upright, cart_velocity, actions):\n    "
)
ANY = "def compute_reward(pole_upright):\n    return pole_upright, {}\n"
TIMEOUT_S = 1.5


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dry")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dry_runner(scratch: Path) -> AsyncIterator[DryRunner]:
    dry_runner = DryRunner(ProcessWall(), Problem("cartpole", "balance"), scratch, TIMEOUT_S)
    await dry_runner.start()
    yield dry_runner
    await dry_runner.close()


async def test_what_a_reward_raises_is_cut_short(dry_runner: DryRunner) -> None:
    """It may come from the memory of its worker."""
    found = the_only_error(
        await dry_runner.dry_run(
            given_reward(
                "def compute_reward(pole_upright):\n    raise ValueError('secret \\n' * 1000)\n"
            )
        )
    )
    assert (found.code, found.line) == ("D302", 2)
    assert "ValueError: secret secret" in found.message
    assert len(found.message) <= LONGEST_FINDING


def the_only_error(findings: tuple[Finding, ...]) -> Finding:
    errors = [finding for finding in findings if finding.severity == "error"]
    assert len(errors) == 1, findings
    assert all(finding.code in CODES for finding in findings)
    return errors[0]


@pytest.mark.parametrize(
    "path", ["rewards/balance_human.py", "rewards/swingup_human.py", "rewards/sparse.py"]
)
async def test_the_baselines_have_no_error(dry_runner: DryRunner, path: str) -> None:
    source = (resource_folder("envs") / "cartpole" / path).read_text()
    findings = await dry_runner.dry_run(baseline(source))
    assert [finding for finding in findings if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("body", "code", "line", "said"),
    [
        ("return pole_upright[:, 3], {}", "D302", 3, "pole_upright (batch), cart_velocity (batch), actions (batch, 1)"),
        ("raise SystemExit(0)", "D302", 3, "SystemExit"),
        ("return pole_upright", "D303", 3, "expected (total, components)"),
        ("return pole_upright.mean(), {}", "D304", 3, "without `dim=-1`"),
        ("return pole_upright, {'a': actions}", "D304", 3, "component 'a'"),
        ("x = torch.log(cart_velocity)\n    y = x + 1\n    return y, {'y': y}", "D305", 3, "component 'y' is nan"),
        ("y = 1 / pole_upright\n    return y, {'y': y}", "D306", 3, "'pole_upright' is 0"),
        ("x = actions[:, 0]\n    x += 1.0\n    return pole_upright, {}", "D317", None, "'actions' is changed in place"),
        ("y = pole_upright * torch.rand(1)\n    return y, {'y': y}", "D307", None, "two calls"),
        ("y = pole_upright - pole_upright.mean()\n    return y, {'y': y}", "D308", 3, "by `y = pole_upright - pole_upright.mean()`"),
        # rows that mix where some are rare
        ("far = cart_velocity.abs() > 9\n    y = pole_upright\n    if far.any():\n        y = y - 9.0\n    return y, {'y': y}", "D308", 6, "some of them rare"),
        ("y = pole_upright\n    if cart_velocity.max() > 9:\n        y = y.sort().values\n    return y, {'y': y}", "D308", 5, "y.sort().values`"),
        # a size whose squares overflow float32 in sums
        ("y = 1e17 * pole_upright\n    return y, {'y': y}", "D305", None, "1e+13 and more cannot be trained on"),
        ("y = pole_upright - 1e12 * cart_velocity.square()\n    return y, {'y': y}", "D306", None, "1e+13 and more cannot be trained on"),
        # memory as it was left, and a term alone that counts
        ("y = pole_upright + torch.empty(10).isnan().any()\n    return y, {'y': y}", "D307", None, "leftovers"),
        ("time.sleep(0.2)\n    return pole_upright, {'y': pole_upright}", "D309", None, "ms"),
        ("while True:\n        pass", "D310", None, "endless loop"),
        ("time.sleep(60)", "D310", None, "did not end within 1.5 s"),
        ("return pole_upright + torch.ones(25 * 10**9).sum(), {}", "D311", 3, "100 GB"),
        ("os._exit(0)", "D312", None, "exit status 0"),
        ("os.kill(os.getpid(), 11)", "D312", None, "SIGSEGV"),
        ("x = 1\n    mmap.mmap(-1, 4096, prot=7)", "D312", 4, "machine code that torch compiles as it runs"),
        ("return pole_upright * 0 + 2, {'y': pole_upright}", "D313", None, "is 2 on all"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_found_and_placed(
    dry_runner: DryRunner, body: str, code: str, line: int | None, said: str
) -> None:
    error = the_only_error(await dry_runner.dry_run(given_reward(HEAD + body)))
    assert (error.code, error.line) == (code, line)
    assert said in f"{error.message} | {error.hint}"


RARE = """
import torch
SEEN = torch.zeros(1)
def seen(kept, value):
    kept += value.sum()
    return kept
def compute_reward(
    pole_upright, cart_position, previous_cart_position, pole_angle, terminated
):
    u, x = pole_upright, cart_position
    step = (x - previous_cart_position).abs()
    band = ((x > 2.4) & (x < 2.9)).float()
    r = u.clone()
    """


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        # in a band that random actions never reach
        ("r = u - band.mean()", "D308", "band.mean()`"),
        ("assert not band.any()", "D302", "(with rare states among others)"),
        ("r = u + seen(SEEN, band)", "D307", "in another order"),
        ("pole_angle.masked_fill_(band > 0, 0.0)\n    r = u - pole_angle", "D317", "'pole_angle'"),
        ("r = u - 1e25 * band", "D306", "trained on"),
        ("r = u - terminated * torch.exp(30.0 * x.abs().clamp(max=2.9))", "D306", "'terminated' is 1"),
        # past the end of the track, where an episode that leaves it ends
        ("r = u + (3.0 - x.abs()).sqrt()", "D306", "(outside its range)"),
        # at the size of a training's batches, and at larger ones
        ("r = u - u.mean() * (len(u) == 512)", "D308", "among 512"),
        ("r = torch.cat([part - 0.1 * n for n, part in enumerate(u.split(600))])", "D308", "rare"),
        ("if len(u) > 600:\n        r = u + seen(SEEN, u)", "D307", "in another order"),
    ],
)  # fmt: skip
async def test_rare_states_and_large_batches_are_tried(
    dry_runner: DryRunner, body: str, code: str, said: str
) -> None:
    source = f"{RARE}{body}\n    return r, {{'r': r}}"
    error = the_only_error(await dry_runner.dry_run(given_reward(source)))
    assert error.code == code
    assert said in f"{error.message} | {error.hint}"


@pytest.mark.parametrize(
    "term",
    [
        # a cosine, a full turn, nearness and a flag stay within their ranges
        "torch.acos(u)",
        "(1.0 - u.square()).sqrt()",
        # physics goes on past the end of the track
        "(3.0 - x.abs()).clamp(min=0.0).sqrt()",
        "torch.nn.functional.one_hot((x > 0.0).long(), 2).float()[:, 0]",
    ],
)
async def test_what_no_state_breaks_is_accepted(dry_runner: DryRunner, term: str) -> None:
    source = f"{RARE}r = u + 0.1 * {term}\n    return r, {{'r': r}}"
    findings = await dry_runner.dry_run(given_reward(source))
    assert [finding for finding in findings if finding.severity == "error"] == []


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("def compute_reward(zebra):\n    return zebra, {}", "D301", "zebra"),
        ("x = 1 / 0\ndef compute_reward(pole_upright):\n    return pole_upright, {}", "D301", "ZeroDivisionError"),
        ("import os\nos._exit(4)\n" + ANY, "D312", "exit status 4"),
    ],
)  # fmt: skip
async def test_a_source_that_cannot_be_loaded(
    dry_runner: DryRunner, source: str, code: str, said: str
) -> None:
    error = the_only_error(await dry_runner.dry_run(given_reward(source)))
    assert error.code == code
    assert said in error.message


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return pole_upright, {}", "D316", "components is empty"),
        ("return pole_upright, {'a': pole_upright, 'b': -0.0}", "D314", "'b' was 0 on all 320 recorded states, which are of random actions"),
        # 1.5 times the total: off by half of |pole_upright|, which is 1 at most
        ("return pole_upright, {'a': pole_upright, 'b': 0.5 * pole_upright}", "D315", "'a' × 0.8, 'b' × 0.4"),
        # a term that is in no component, and one that a clamp cuts off
        ("return pole_upright - 5.0 * cart_velocity.abs(), {'a': pole_upright}", "D315", "its components"),
        ("y = pole_upright + cart_velocity\n    return y.clamp(-0.1, 0.1), {'a': pole_upright, 'b': cart_velocity}", "D315", "has 0.1,"),
        ("time.sleep(0.02)\n    return pole_upright, {'a': pole_upright}", "D309", "ms"),
    ],
)  # fmt: skip
async def test_what_is_odd_but_not_wrong_is_a_warning(
    dry_runner: DryRunner, body: str, code: str, said: str
) -> None:
    findings = await dry_runner.dry_run(given_reward(HEAD + body))
    assert {finding.severity for finding in findings} == {"warning"}
    found = next(finding for finding in findings if finding.code == code)
    assert said in found.message


async def test_a_machine_without_room_for_a_fork_is_no_finding_on_the_reward(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full() -> int:
        raise BlockingIOError(errno.EAGAIN, "no process is left")

    monkeypatch.setattr(os, "fork", full)
    opened = os.listdir("/proc/self/fd")
    with pytest.raises(ProcessStartError, match=os.strerror(errno.EAGAIN)):
        run_in_child(lambda: b"", 1.0, ())
    assert os.listdir("/proc/self/fd") == opened


@pytest.mark.parametrize(
    "returned",
    [
        "a * b, {'a': a, 'b': b}",
        "2.0 * a * b + c, {'a': a, 'b': b, 'c': c}",
    ],
)
async def test_sums_and_products_of_components_leave_no_term_out(
    dry_runner: DryRunner, returned: str
) -> None:
    body = (
        "a, b, c = pole_upright, cart_velocity, torch.exp(-cart_velocity.abs())\n    return"
        f" {returned}"
    )
    assert not [
        finding
        for finding in await dry_runner.dry_run(given_reward(HEAD + body))
        if finding.code == "D315"
    ]


@pytest.mark.parametrize(
    ("returned", "codes"),
    [
        ("a, {'a': a, 'b': b}", []),  # factors need not add up
        ("a, {'a': a, 'b': b, 'c': 3.0 - 2.0 * a}", ["D318"]),
        ("a, {'a': a, 'none': 0.0 * a, 'one': 0.0 * b + 1.0}", ["D314", "D314"]),
        ("a, {}", ["D316"]),
    ],
)
async def test_factors_of_a_learned_reward_are_there_and_differ(
    dry_runner: DryRunner, returned: str, codes: list[str]
) -> None:
    body = f"a, b = pole_upright, cart_velocity\n    return {returned}"
    found = await dry_runner.dry_run(given_reward(HEAD + body).of_kind("latent"))
    assert [each.code for each in found] == codes
    assert [each.severity for each in found if each.code == "D316"] == ["error"] * codes.count(
        "D316"
    )
    for each in found:
        if each.code == "D318":
            assert "'a' and 'c'" in each.message


OBSERVED = """import torch
def compute_reward(goal_distance):
    return -goal_distance, {"near": -goal_distance}
def design_observation(ball_position_w, goal_position_w, ball_speed):
    a, goal, speed = ball_position_w, goal_position_w, ball_speed.unsqueeze(-1)
    return """


@pytest.mark.parametrize(
    ("returned", "code", "says"),
    [
        ("torch.cat([a, goal, speed], dim=-1)", "", ""),
        ("torch.cat([a, goal - a[:, :2], speed], dim=-1)", "", ""),
        ("a - a.mean(dim=0)", "D319", "depends on other rows"),
        ("a[:, 7:]", "D319", "(batch, 0)"),
        ("a.repeat(1, 4000)", "D319", "(batch, 12000)"),
        ("torch.cat([goal, 1.0 / (speed - speed)], dim=-1)", "D320", "number 2 is NaN"),
        ("torch.cat([goal, torch.ones_like(a)], dim=-1)", "D321", "number 2, 3, 4 of 5"),
    ],
)
async def test_faults_of_a_designed_observation(
    scratch: Path, returned: str, code: str, says: str
) -> None:
    runner = DryRunner(ProcessWall(), Problem("ball_balance", "roll_to"), scratch, TIMEOUT_S)
    await runner.start()
    try:
        found = await runner.dry_run(given_reward(OBSERVED + returned))
        source = "def design_observation(ball_position_w):\n    return ball_position_w\n"
        blind = await runner.dry_run(given_reward(OBSERVED.partition("def design")[0] + source))
    finally:
        await runner.close()
    assert [each.code for each in found] == [code] * bool(code)
    assert all(says in each.message for each in found)
    # where the ball is to go stays in an episode, and is not told
    assert [(each.code, each.severity) for each in blind] == [("D322", "warning")]
    assert "'goal_position_w'" in blind[0].message


async def test_it_has_no_descriptors_but_its_own(dry_runner: DryRunner) -> None:
    """Its input and outputs, which lead nowhere, and its way to the worker."""
    found = the_only_error(
        await dry_runner.dry_run(
            given_reward(
                "import errno, os\n"
                "def there(descriptor):\n"
                "    try:\n"
                "        os.lseek(descriptor, 0, os.SEEK_CUR)\n"
                "    except OSError as error:\n"
                "        return error.errno != errno.EBADF\n"
                "    return True\n"
                "def compute_reward(pole_upright):\n"
                "    raise ValueError([there(each) for each in range(3)], sum(map(there, range(4096))))\n"
            )
        )
    )
    assert "ValueError: ([True, True, True], 4)" in found.message


async def test_what_it_writes_without_end_is_not_read_without_end(dry_runner: DryRunner) -> None:
    """It is ended at a bound, long before its time is over."""
    found = the_only_error(
        await dry_runner.dry_run(
            given_reward(
                "import os, time\n"
                "def compute_reward(pole_upright):\n"
                "    while True:\n"
                "        for descriptor in range(3, 64):\n"
                "            try:\n"
                "                os.write(descriptor, b'x' * 65536)\n"
                "            except OSError:\n"
                "                pass\n"
                "        time.sleep(0.01)\n"
            )
        )
    )
    assert found.code == "D312"

"""Jobs, events and faults, with no simulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from eureka_adapter import Fault, Job, Variable, episode_seed
from job_folders import ADAPTERS, JobFolder, MakeFolder

FITNESS = "def compute_fitness(x):\n    return x\n"
SIZES = {"num_observations": 1, "num_actions": 1, "control_dt": 1 / 60, "max_episode_length": 9}


def opened(folder: JobFolder, mode: str = "describe", **fields: object) -> Job:
    folder.job(mode, **{"episodes": 1, "most_steps": 5, **fields})
    return Job.open(["ignored", str(folder.path)])


def test_a_description_has_all_fields_and_versions_of_what_is_installed(folder: MakeFolder) -> None:
    job = opened(made := folder(FITNESS))
    variables = [Variable("x", (2,), "m", "world", "place", (-1.0, 1.0)), Variable("y")]
    job.described(variables, **SIZES, versions=["pytest", "no-such-package"], can={"film": True})
    (event,) = made.events()
    assert event["variables"] == [
        {
            "name": "x",
            "shape": [2],
            "unit": "m",
            "frame": "world",
            "doc": "place",
            "range": [-1, 1],
        },
        {"name": "y", "shape": [], "unit": "1", "frame": "-", "doc": ""},
    ]
    assert event["control_dt"] == 1 / 60  # whole, not rounded
    assert event["versions"] == {"pytest": pytest.__version__}
    assert event["can"] == {
        "rungs": True,
        "save": True,
        "film": True,
        "dry_run": True,
        "rewards": 1,
    }
    assert (event["ends"].keys(), event["success_ends"]) == ({"terminated"}, [])


def test_fields_that_are_unknown_or_missing_are_named(folder: MakeFolder) -> None:
    sizes = {name: value for name, value in SIZES.items() if name != "control_dt"}
    with pytest.raises(Fault, match=r"\['control_dt', 'end'\] are unknown or missing"):
        opened(folder(FITNESS)).described([], **sizes, end={"fell": "it fell"})


def test_numbers_are_short_and_finite(folder: MakeFolder) -> None:
    job = opened(made := folder(FITNESS))
    job.event("curve", reward=0.1 + 1e-9, terms={"a": [1, 2.5, None]})
    assert made.events() == [{"event": "curve", "reward": 0.1, "terms": {"a": [1, 2.5, None]}}]
    with pytest.raises(Fault, match=r"event 'curve', 'terms', 'a' is nan, expected a finite"):
        job.event("curve", terms={"a": [1.0, float("nan")]})
    assert len(made.events()) == 1


def test_seeds_of_episodes_are_apart_and_always_the_same() -> None:
    assert episode_seed(3, 0) == episode_seed(3, 0)
    drawn = {episode_seed(seed, number) for seed in range(50) for number in range(50)}
    assert len(drawn) == 2500
    assert all(0 <= seed < 2**31 for seed in drawn)


@pytest.mark.parametrize(
    ("body", "whose", "said"),
    [
        ("Job.open()", "environment", "protocol 2, expected 1"),
        ("with blame('trainer'):\n    1 / 0", "trainer", "ZeroDivisionError: division by zero ("),
        ("with blame('trainer'), blame('environment'):\n    1 / 0", "environment", "division"),
        ("raise RewardFault('no', 'do', 7, 'a')", "reward", "no"),
    ],
)
def test_an_uncaught_exception_is_a_fault_with_its_owner(
    folder: MakeFolder, body: str, whose: str, said: str
) -> None:
    made = folder(FITNESS)
    made.job("describe", protocol=2 if "protocol" in said else 1)
    script = Path(made.path / "program.py")
    script.write_text(
        f"from eureka_adapter import Job, blame, RewardFault\nif {'protocol' not in said}: Job.open()\n{body}\n"
    )
    result = made.run(script)
    assert result.returncode == 1
    assert "Traceback" in result.stderr
    (event,) = made.events()
    assert (event["event"], event["whose"]) == ("fault", whose)
    assert said in event["message"]
    if whose == "reward":
        assert (event["training"], event["line"], event["hint"]) == ("a", 7, "do")


def test_the_package_is_imported_without_torch_and_numpy() -> None:
    body = "import sys; sys.modules['torch'] = sys.modules['numpy'] = None; import eureka_adapter; eureka_adapter.Job"
    subprocess.run([sys.executable, "-c", body], env={"PYTHONPATH": str(ADAPTERS)}, check=True)


def test_an_old_python_is_told_what_is_needed() -> None:
    program = "import sys; sys.version_info = (3, 8, 18); import eureka_adapter"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ADAPTERS)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    assert "needs Python 3.9 or newer, and this is Python 3.8" in ended.stderr

"""The states of dry runs are checked when they are recorded: an environment that fails there is
told before any reward is called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faulty_environments import RESET, TASK, after_steps, line_of, write_lift

from eureka_agent.errors import EnvironmentFaultError
from eureka_agent.simulation.loading import load_environment
from eureka_agent.worker import dry_run
from eureka_agent.worker.dry_run import RECORDED_STEPS, record_transitions, rehearse


def tried_out(folder: Path) -> None:
    """Open an environment as a worker of dry runs does."""
    loaded = load_environment(str(folder))
    _, task = loaded.task(None)
    environment = loaded.environment_class.create(8, "cpu", 0, task.options)
    rehearse(environment, task, record_transitions(environment, environment.all_variables()))


def test_a_whole_environment_passes(tmp_path: Path) -> None:
    tried_out(write_lift(tmp_path / "lift"))


@pytest.mark.parametrize(
    ("change", "part", "said"),
    [
        (after_steps(6, "self.velocity[3] = torch.nan"), '"motion": torch', "'motion', column 0 is nan in step 7 of"),
        # beyond what is recorded
        (after_steps(RECORDED_STEPS + 6, "self.height[:] = torch.inf"), '"height": self', "'height' is inf in step"),
        (((RESET, RESET + "        self.height[2:] = torch.nan\n"),), '"height": self', "nan right after a reset"),
        (after_steps(6, "raise OSError('no cable')"), "raise OSError", "in simulate: OSError: no cable"),
        ((('"hit_the_roof": self', '"lost": self'),), "class Lift", "ends episodes by 'lost'"),
        (((RESET, RESET + "        while True: pass\n"),), "while True", "a reset of 8 environments did not end within 0.3 s"),
        ((("dim=1)", "dim=0)"),), '"motion": torch', "'motion' has the shape (2, 8), expected (8, 2)"),
        ((('            "height": self.height,\n', ""),), "def compute_variables", "'height' is declared, but not given"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_file_and_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: tuple[tuple[str, str], ...],
    part: str,
    said: str,
) -> None:
    monkeypatch.setattr(dry_run, "CALL_SECONDS", 0.3)
    folder = write_lift(tmp_path / "lift", *change)
    with pytest.raises(EnvironmentFaultError, match=re.escape(said)) as caught:
        tried_out(folder)
    line = line_of((folder / "env.py").read_text(), part)
    assert re.match(rf"{re.escape(str(folder / 'env.py'))}, line {line}[:,]", caught.value.message)
    assert caught.value.hint
    assert ("no setting raises this limit" in caught.value.hint) == ("did not end" in said)


@pytest.mark.parametrize(
    ("fitness", "said"),
    [
        ("height / (height > 9.0)", "NaN or infinite"),
        ("height / nothing", "line 5, in fitness: NameError"),
    ],
)
def test_the_task_s_own_fitness_is_tried_too(tmp_path: Path, fitness: str, said: str) -> None:
    task = TASK.replace("return height", f"return {fitness}")
    folder = write_lift(tmp_path / "lift", task=task)
    with pytest.raises(EnvironmentFaultError, match=said) as caught:
        tried_out(folder)
    assert str(folder / "tasks" / "up.py") in caught.value.message

"""`eureka envs --check` finds more than broken contracts: misspelt hooks, forgotten columns, hidden
state, metrics that tell nothing, endless loops."""

from __future__ import annotations

from pathlib import Path

import pytest
from faulty_environments import (
    PHYSICS,
    RESET,
    REWARD,
    TASK,
    grouped,
    line_of,
    table,
    write_lift,
)

from eureka_agent.training.conformance import CheckObserver, CheckResult, check_environment

BASELINES = {
    "human": REWARD,
    "sparse": 'def compute_reward(height):\n    return height, {"height": height}\n',
}


def check(folder: Path) -> dict[str, CheckResult]:
    """Results that are not as they should be, by the check's name."""
    results = check_environment(str(folder), rollout_s=0.1)
    assert len({(result.task, result.name) for result in results}) >= len(results) - 1
    return {result.name: result for result in results if result.severity != "ok"}


def test_nothing_is_found_in_a_whole_environment(tmp_path: Path) -> None:
    assert check(write_lift(tmp_path / "lift", rewards=BASELINES)) == {}


FOUND = table(r"""
a misspelt hook | loads | warning | Lift has 'compute_terminations', which overrides nothing | def compute_termination( | def compute_terminations(
a column never written | observation columns | error | never written: columns 2, 3 | num_observations = 2 | num_observations = 4
a velocity that is not reset | episodes begin anew | error | what an episode leaves in self.velocity is there in the next |         self.velocity[env_ids] = 0.0\n | ∅
a timer that is not reset, and that these episodes never start | episodes begin anew | error | what an episode leaves in self.waited is there in the next: height is |         self.velocity = torch.zeros(num_envs)\n |         self.velocity = torch.zeros(num_envs)\n        self.waited = torch.zeros(num_envs)\n |         self.height = self.height + 0.1 * self.velocity\n |         self.height = self.height + 0.1 * self.velocity\n        self.waited = torch.where(self.height > 4.9, self.waited + 0.1, 0.0)\n | "height": self.height, | "height": self.height + self.waited,
physics that explode | finite under random actions | error | the physics explodes |         self.height = self.height + 0.1 * self.velocity\n |         self.height = self.height + 0.1 * self.velocity\n        self.velocity = 2.0 * self.velocity\n | self.height > 5.0 | self.height > 1e30
a parameter that nothing reads | parameters | error | all are equal in 130 steps |     num_actions = 1 |     from eureka_agent.task import Parameter\n    parameters = (Parameter('load', '1', 1.0, 1.0, 2.0, 'factor'),)\n    num_actions = 1
a parameter whose default changes the physics | parameters | error | without and |     num_actions = 1 |     from eureka_agent.task import Parameter\n    parameters = (Parameter('load', '1', 1.0, 1.0, 2.0, 'factor'),)\n    num_actions = 1 |         self.height = self.height + 0.1 * self.velocity\n |         self.height = self.height + 0.1 * self.velocity\n        self.height = self.height * self.load\n |         self.velocity = torch.zeros(num_envs)\n |         self.velocity = torch.zeros(num_envs)\n        self.load = torch.full((num_envs,), 1.0)\n |     def reset_idx( |     def parameters_changed(self, env_ids):\n        self.load = self.parameter_values['load'] + 1e-3\n\n    def reset_idx(
a range with an end at which the physics breaks | parameters | error | an end of its range |     num_actions = 1 |     from eureka_agent.task import Parameter\n    parameters = (Parameter('load', '1', 1.0, 0.0, 2.0, 'factor'),)\n    num_actions = 1 |         self.height = self.height + 0.1 * self.velocity\n |         self.height = self.height + 0.1 * self.velocity\n        self.height = self.height / self.parameter_values['load']\n
a state that only a training reaches | a brief training | error | the variable 'height' is nan in step |         self.height = self.height + 0.1 * self.velocity\n |         self.height = self.height + 0.1 * self.velocity\n        self.height[10:] = torch.nan\n
""")


@pytest.mark.parametrize("fault", FOUND)
def test_a_fault_is_found(tmp_path: Path, fault: str) -> None:
    name, severity, actual, *changes = FOUND[fault]
    found = check(write_lift(tmp_path / "lift", *grouped(changes), rewards=BASELINES))
    assert next(iter(found)) == name
    assert found[name].severity == severity
    assert actual in found[name].actual
    assert found[name].hint
    assert found[name].passed == (severity == "warning")


LISTED = ("num_actions = 1", 'num_actions = 1\n    caption_variables = ("height",)')
CAPTIONS = """    @classmethod
    def caption_codes(cls, values):
        return (values['height'] > 0.0).long()

    @classmethod
    def caption(cls, code):
        return f"the lift is {'above' if code else 'below'}"

    def reset_idx("""
CAPTION_FAULTS = table(r"""
floats | caption_codes gave torch.float32 of shape (960,), expected torch.int64 | .long() | .float()
negative codes | int64 of shape (960,), -1 to 0, expected | .long() | .long() - 1
a row too few | int64 of shape (959,), expected | .long() | .long()[1:]
mixed rows | among 960 rows, 0 alone | > 0.0 | > values['height'].mean()
random codes | in a second call | (values['height'] > 0.0) | (torch.rand(len(values['height'])) > 0.5)
a value written into | it changed 'height' | values['height'] > | values['height'].abs_() >
a variable that is not listed | KeyError: 'motion' | ['height'] | ['motion'][:, 0]
a caption that raises | IndexError | f"the lift | ["below"][code] + f"the lift
no text | caption(0) gave int, expected a text | return f"the lift is {'above' if code else 'below'}" | return code
an empty text | caption(0) gave 0 characters, '' | f"the lift is {'above' if code else 'below'}" | ""
a long text | gave 561 characters, | below'}" | below'}" * 33
a control character | 'the lift\x1bis below', expected a text of 1 to 200 printable | lift is | lift\x1bis
one text for two codes | 'the lift is' for 0 and 1 |  {'above' if code else 'below'} | ∅
""")


def test_captions_of_the_states_met_are_counted(tmp_path: Path) -> None:
    folder = write_lift(tmp_path / "lift", LISTED, ("    def reset_idx(", CAPTIONS))
    found = {each.name: each for each in check_environment(str(folder), rollout_s=0.1)}
    assert (found["captions"].severity, found["captions"].actual) == ("ok", "2 in 960 states")


@pytest.mark.parametrize("fault", CAPTION_FAULTS)
def test_a_fault_of_captions_is_found(tmp_path: Path, fault: str) -> None:
    actual, old, new = CAPTION_FAULTS[fault]
    assert old in CAPTIONS
    faulty = ("    def reset_idx(", CAPTIONS.replace(old, new))
    found = check(write_lift(tmp_path / "lift", LISTED, faulty, rewards=BASELINES))
    assert list(found) == ["captions"]
    assert actual in found["captions"].actual
    assert found["captions"].severity == "error"
    assert found["captions"].hint


@pytest.mark.parametrize(
    ("fitness", "actual"),
    [("0.0 * height + 3.0", "3 in all "), ("(height > 1e6).float()", "0 in all ")],
)
def test_a_fitness_that_is_always_the_same_is_found(
    tmp_path: Path, fitness: str, actual: str
) -> None:
    task = TASK.replace("return height", f"return {fitness}")
    sparse = (
        f'def compute_reward(height):\n    total = {fitness}\n    return total, {{"total":'
        " total}\n"
    )
    no_roof = ("self.height > 5.0", "self.height > 1e9")  # an episode that ends early is worth less
    found = check(
        write_lift(
            tmp_path / "lift", no_roof, task=task, rewards={"human": REWARD, "sparse": sparse}
        )
    )
    assert list(found) == ["fitness tells apart"]
    assert found["fitness tells apart"].severity == "warning"
    assert found["fitness tells apart"].actual.startswith(actual)


def test_an_error_that_every_check_runs_into_is_told_once(tmp_path: Path) -> None:
    change = (PHYSICS, f"{PHYSICS}        raise RuntimeError('no table')\n")
    results = check_environment(
        str(write_lift(tmp_path / "lift", change, rewards=BASELINES)), rollout_s=0.1
    )
    (told,) = (each for each in results if not each.passed)
    assert told.actual.endswith("RuntimeError: no table")


@pytest.mark.parametrize(
    ("change", "part", "name"),
    [
        (
            (RESET, RESET + "        while self.height.max() < 99.0: pass\n"),
            "while self.height",
            "can be made",
        ),
        ((PHYSICS, "        while True: pass\n"), "while True", "termination"),
    ],
)
def test_a_loop_that_never_ends_is_found_within_the_limit(
    tmp_path: Path, change: tuple[str, str], part: str, name: str
) -> None:
    folder = write_lift(tmp_path / "lift", change, rewards=BASELINES)
    results = check_environment(str(folder), limit_s=2.0)
    assert [result.name for result in results if not result.passed] == [name] == [results[-1].name]
    line = line_of((folder / "env.py").read_text(), part)
    assert results[-1].actual == f"{folder / 'env.py'}, line {line}: it did not end within 2 s"
    assert "--time-limit" in results[-1].hint


SECOND_TASK = TASK.replace("go up", "go down").replace("return height", "return -hieght")


def test_every_task_is_checked_and_an_environment_once_for_each_set_up(tmp_path: Path) -> None:
    folder = write_lift(tmp_path / "lift", rewards=BASELINES)
    (folder / "tasks" / "again.py").write_text(TASK)
    (folder / "tasks" / "down.py").write_text(SECOND_TASK)
    begun: list[tuple[str, str]] = []

    class Noting(CheckObserver):
        def begins(self, task: str, name: str, seconds: float) -> None:
            begun.append((task, name))

    results = check_environment(str(folder), rollout_s=0.1, observer=Noting())
    assert [(each.task, each.name) for each in results if not each.passed] == [("down", "fitness")]
    assert [task for task, name in begun if name == "resets"] == ["again"]
    assert [task for task, name in begun if name == "fitness"] == ["again", "down", "up"]
    assert {each.task for each in check_environment(str(folder), "up", rollout_s=0.1)} == {"", "up"}

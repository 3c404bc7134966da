"""Gymnasium environments of other people's packages: ids with a module, Dict observations,
`make()`, and faults that are theirs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from faulty_environments import table

from eureka_agent import libraries
from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.invocation import install_extra
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.training.conformance import check_environment

PACKAGE = '''
import gymnasium
import numpy as np
from gymnasium import spaces


class Maze(gymnasium.Env):
    """A mouse in a maze.

    ## Observation Space
    Where it is.
    """

    metadata = {"render_modes": [], "render_fps": 10}
    observation_space = spaces.Dict({
        "observation": spaces.Box(0.0, 9.0, (2,), np.float32),
        "goal": spaces.Dict({"position": spaces.Box(0.0, 3.0, (2, 2), np.float32), "colour-code": spaces.Discrete(3, start=1)}),
        "doors": spaces.MultiBinary(2),
        "keys": spaces.MultiDiscrete([2, 4]),
        "actions": spaces.Box(-np.inf, np.inf, (), np.float32),
    })
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, length=4, fails_at=None):
        self.length, self.fails_at = length, fails_at

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.x = 0, self.np_random.random()
        return self.look(), {}

    def look(self):
        return {
            "observation": np.array([self.count, self.x], np.float32),
            "goal": {"position": np.array([[0, 1], [2, 3]], np.float32), "colour-code": 1 + self.count % 3},
            "doors": np.array([1, self.count % 2], np.int8),
            "keys": np.array([1, 3]),
            "actions": np.array(0.5, np.float32),
        }

    def step(self, action):
        self.count += 1
        if self.count == self.fails_at:
            np.zeros(2)[self.count + 5]
        return self.look(), -1.0 if self.count < self.length else 5.0, self.count >= self.length, False, {}


gymnasium.register("Maze-v0", entry_point="mouse_package.mazes:Maze", max_episode_steps=7, reward_threshold=2.0)
gymnasium.register("Fragile-v0", entry_point="mouse_package.mazes:Maze", kwargs={"fails_at": 3})
'''
LINE = 1 + next(index for index, line in enumerate(PACKAGE.split("\n")) if "np.zeros(2)[" in line)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that nothing has imported yet, in a folder of Python's path."""
    folder = tmp_path / "modules"
    (folder / "mouse_package").mkdir(parents=True)
    (folder / "mouse_package" / "__init__.py").touch()
    (folder / "mouse_package" / "mazes.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield folder
    for name in [name for name in sys.modules if name.startswith("mouse_package")]:
        del sys.modules[name]
    for name in ("Maze-v0", "Fragile-v0"):
        gymnasium.registry.pop(name, None)


def made(reference: str, num_envs: int, options: dict[str, Any] | None = None) -> Any:
    loaded = load_environment(reference)
    return loaded.environment_class.create(num_envs, "cpu", 0, options or {})


def test_an_id_with_a_module_is_imported_and_registered(package: Path) -> None:
    loaded = load_environment("gymnasium:mouse_package.mazes:Maze-v0")
    description = describe(loaded)
    assert (
        description.max_episode_length,
        description.control_dt,
        description.success_fitness,
    ) == (7, 0.1, 2.0)
    assert description.sentence.startswith("solve maze: ")
    assert description.doc == "A mouse in a maze."
    before = description.fingerprint
    (package / "mouse_package" / "mazes.py").write_text(PACKAGE.replace("5.0", "6.0"))
    for name in [name for name in sys.modules if name.startswith("mouse_package")]:
        del sys.modules[name]
    assert describe(load_environment("gymnasium:mouse_package.mazes:Maze-v0")).fingerprint != before


def test_entries_of_a_dict_are_variables(package: Path) -> None:
    loaded = load_environment("gymnasium:mouse_package.mazes:Maze-v0")
    found = {variable.name: variable for variable in loaded.environment_class.variables}
    assert {
        name: (each.shape, each.range) for name, each in found.items() if name != "native_reward"
    } == {
        "observation": ((2,), (0.0, 9.0)),
        "goal_position": ((2, 2), (0.0, 3.0)),
        "goal_colour_code": ((), (1.0, 3.0)),
        "doors": ((2,), (0.0, 1.0)),
        "keys": ((2,), (0.0, 3.0)),
        "observed_actions": ((), None),
    }
    environment = loaded.make(loaded.task(None)[1], 3)
    # the policy gets numbers and, of each Discrete one, a 1 among zeros: 2 + 4 + 3 + 2 + (2 + 4) +
    # 1
    assert environment.obs_buf.shape == (3, 18)
    values = environment.advance(torch.zeros(3, 1)).variables
    assert values["observation"][:, 0].tolist() == [1.0, 1.0, 1.0]
    assert values["goal_position"][1].tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert values["goal_colour_code"].tolist() == [2.0, 2.0, 2.0]
    assert values["doors"][0].tolist() == [1.0, 1.0]
    assert values["keys"][2].tolist() == [1.0, 3.0]
    assert values["observed_actions"].tolist() == [0.5] * 3
    # the same in what an export tells of the policy's input: shapes of the space, in the order in
    # which Gymnasium flattens it
    channels = describe(loaded).observation_channels
    sizes = {each.name: len(each.entries) or 1 for each in channels}
    flat = gymnasium.spaces.flatten(
        environment.environments[0].observation_space, environment.environments[0].unwrapped.look()
    )
    assert environment.obs_buf[0].tolist() == flat.tolist()
    assert sizes == {
        "observation": 2,
        "goal_position": 4,
        "goal_colour_code": 3,
        "doors": 2,
        "keys": 6,
        "observed_actions": 1,
    }
    (colour,) = [each for each in channels if each.name == "goal_colour_code"]
    assert colour.entries == ("is_0", "is_1", "is_2")
    columns = [f"{each.name}.{entry}" for each in channels for entry in each.entries or ("",)]
    assert flat[columns.index("goal_colour_code.is_1")] == 1.0
    assert flat[columns.index("keys.is_5")] == 1.0
    assert [
        result
        for result in check_environment("gymnasium:mouse_package.mazes:Maze-v0")
        if not result.passed
    ] == []


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


MAKE = '''"""The maze, seen by hand."""

import gymnasium
import mouse_package.mazes
from eureka_agent.task import Variable

VARIABLES = (Variable("doors", (2,), "1", "-", "1 for each open door: west, east"),)


def make(length=3):
    maze = gymnasium.make("Maze-v0", length=length)
    return gymnasium.wrappers.FilterObservation(maze, ["observation", "doors"])
'''


def test_a_folder_may_make_its_environment(package: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "my_maze", env=MAKE)
    loaded = load_environment(str(folder))
    description = describe(loaded)
    assert list(loaded.tasks) == ["native"]
    assert (description.doc, description.max_episode_length) == ("The maze, seen by hand.", 7)
    doors = next(each for each in description.variables if each.name == "doors")
    assert (doors.doc, doors.range) == ("1 for each open door: west, east", (0.0, 1.0))
    assert description.sparse_reward is not None
    assert "native_reward" in description.sparse_reward.source
    assert [result for result in check_environment(str(folder)) if not result.passed] == []
    # a task's options are arguments of make
    for length in (2, 5):
        environment = loaded.environment_class.create(1, "cpu", 0, {"length": length})
        environment.reset()
        ended = [bool(environment.advance(torch.zeros(1, 1)).terminated[0]) for _ in range(length)]
        assert ended == [False] * (length - 1) + [True]


def test_a_task_in_env_py_takes_the_place_of_the_native_one(package: Path, tmp_path: Path) -> None:
    task = (
        "\nfrom eureka_agent.task import Task\n\n\ndef fitness(observation):\n    return"
        " observation[:, 1]\n\n\ntask = Task(sentence='open all doors', fitness=fitness,"
        " fitness_doc='open doors')\n"
    )
    description = describe(load_environment(str(write(tmp_path / "my_maze", env=MAKE + task))))
    assert (description.sentence, description.sparse_reward) == ("open all doors", None)


def test_a_fault_of_a_package_is_told_as_its_own(package: Path, tmp_path: Path) -> None:
    file = package / "mouse_package" / "mazes.py"
    told = (
        rf"the package 'mouse_package' failed in .*: {file}, line {LINE}: IndexError: index 8 is"
        r" out of bounds"
    )
    with pytest.raises(EnvironmentLoadError, match=told) as error:
        load_environment("gymnasium:mouse_package.mazes:Fragile-v0")
    assert "'mouse_package'" in error.value.hint
    # in a training, long after it was loaded
    folder = write(
        tmp_path / "my_maze",
        env=MAKE.replace("length=3", "fails_at=None").replace("length=length", "fails_at=fails_at"),
    )
    environment = made(str(folder), 2, {"fails_at": 2})
    environment.reset()
    environment.advance(torch.zeros(2, 1))
    with pytest.raises(
        EnvironmentLoadError,
        match=rf"'mouse_package' failed in a step: {file}, line {LINE}: IndexError: index 7",
    ):
        environment.advance(torch.zeros(2, 1))


def test_a_package_that_needs_another_mujoco_says_which(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"mouse_package": ("1.5.2", "3.3.7")}
    monkeypatch.setattr(libraries, "BROKEN_BY_MUJOCO_4", known)
    versions = {"mouse_package": "1.5.2", "mujoco": "4.0.0"}
    monkeypatch.setattr(libraries, "version", versions.__getitem__)
    with pytest.raises(EnvironmentLoadError, match="IndexError: index 8") as error:
        load_environment("gymnasium:mouse_package.mazes:Fragile-v0")
    told = "mouse_package 1.5.2 fails under mujoco 4.0.0; it works with mujoco 3.3.7"
    assert told in error.value.hint
    versions["mouse_package"] = "1.6.0"
    assert libraries.mujoco_mismatch("mouse_package") == ""


NOT_MADE = table(r"""
no module | no_such_package.mazes:Maze-v0 | No module named 'no_such_package' | PYTHONPATH
a slip | mouse_package.mazes:Mase-v0 | Gymnasium has no environment 'mouse_package.mazes:Mase-v0' | did you mean 'gymnasium:mouse_package.mazes:Maze-v0'?
nothing like it | mouse_package.mazes:Zzzzzzz | no environment 'mouse_package.mazes:Zzzzzzz' | pprint_registry
not imported | Mouse_Package-Small-v0 | no environment 'Mouse_Package-Small-v0' | did you mean 'gymnasium:mouse_package:Mouse_Package-Small-v0'?
a broken module | broken_package:Maze-v0 | the package 'broken_package' failed .*broken_package\.py, line 2: KeyError: 1 | 'broken_package'
""")


@pytest.mark.parametrize("case", NOT_MADE)
def test_an_id_that_cannot_be_made_is_told(package: Path, case: str) -> None:
    name, message, hint = NOT_MADE[case]
    (package / "broken_package.py").write_text("\n{}[1]\n")
    with pytest.raises(EnvironmentLoadError, match=message) as error:
        load_environment(f"gymnasium:{name}")
    assert hint in error.value.hint


GRID = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Words(spaces.Space):
    def __init__(self):
        super().__init__(dtype=str)

    def sample(self, mask=None, probability=None):
        return "go there"

    def contains(self, x):
        return True

    @property
    def is_np_flattenable(self):
        raise NotImplementedError


class Grid(gymnasium.Env):
    max_steps = 30
    observation_space = spaces.Dict([
        ("mission", Words()),
        ("view", spaces.Box(0, 255, (3, 3, 2), np.uint8)),
        ("heading", spaces.Discrete(4)),
        ("note", spaces.Text(9)),
    ])
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self.look(), {}

    def look(self):
        view = np.arange(18, dtype=np.uint8).reshape(3, 3, 2) + self.count
        return {"mission": "go", "heading": self.count % 4, "view": view, "note": "so"}

    def step(self, action):
        self.count += 1
        return self.look(), float(action), False, False, {}


def make():
    return Grid()
"""


def test_texts_are_left_out_and_a_small_grid_is_numbers(tmp_path: Path) -> None:
    """MiniGrid observes a mission in words, a heading, and a view of a few squares."""
    environment = made(str(write(tmp_path / "grid", env=GRID)), 2)
    # in the environment's order: 3·3·2 for the view, a 1 among 4 for the heading
    assert environment.num_observations == 22
    names = {each.name: each.shape for each in environment.all_variables() if not each.private}
    assert names == {"actions": (), "terminated": (), "heading": (), "view": (3, 3, 2)}
    environment.reset()
    transition = environment.advance(torch.tensor([[2.0], [0.0]]))
    expected = [*map(float, range(1, 19)), 0.0, 1.0, 0.0, 0.0]
    assert transition.observations[1].tolist() == expected
    assert transition.variables["view"][1].flatten().tolist() == expected[:18]
    assert transition.variables["native_reward"].tolist() == [2.0, 0.0]
    length = environment.max_episode_length, environment.episode_source.partition(";")[0]
    assert length == (30, "length from its attribute max_steps")


def test_minigrid_is_taken_as_it_is() -> None:
    pytest.importorskip("minigrid")
    loaded = load_environment("gymnasium:minigrid:MiniGrid-Empty-5x5-v0")
    description = describe(loaded)
    assert (description.num_observations, description.action_choices) == (4 + 7 * 7 * 3, (7,))
    assert description.max_episode_length == 4 * 5 * 5
    shown = {each.name: each for each in description.public_variables()}
    assert shown["image"].shape == (7, 7, 3)
    assert "| 2   | forward" in description.details
    assert "1 - 0.9" not in description.details, "the reward stays with the environment"
    environment = loaded.make(loaded.task(None)[1], 1)
    # to the goal in the other corner: two steps forward, a turn to the right, two more
    for choice in (2, 2, 1, 2):
        transition = environment.advance(torch.tensor([[float(choice)]]))
        assert not transition.terminated.any()
    transition = environment.advance(torch.tensor([[2.0]]))
    assert transition.terminated.all()
    # 1 - 0.9 · 5 steps of 100
    assert transition.variables["native_reward"].item() == pytest.approx(0.955)


REFUSED = {
    "image": ("spaces.Box(0, 255, (96, 96, 3), np.uint8)", r"is an image of shape \(96, 96, 3\)"),
    "image in a Dict": (
        "spaces.Dict(view=spaces.Box(0, 1, (3, 32, 32)))",
        r"the entry 'view' of .* is an image",
    ),
    "Tuple": (
        "spaces.Dict(a=spaces.Tuple([spaces.Discrete(2)]))",
        "the entry 'a' of .* whose parts have no names",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_observations_that_a_policy_cannot_take_are_refused_before_the_first_step(
    tmp_path: Path, case: str
) -> None:
    space, message = REFUSED[case]
    env = f"""
import gymnasium
import numpy as np
from gymnasium import spaces


class Camera(gymnasium.Env):
    observation_space = {space}
    action_space = spaces.Discrete(2)

    def reset(self, **arguments):
        raise AssertionError("it was reset")


def make():
    return Camera()
"""
    with pytest.raises(EnvironmentLoadError, match=message) as error:
        load_environment(str(write(tmp_path / "camera", env=env)))
    assert "def make()" in error.value.hint


MISMADE = table(r"""
nothing returned |     return gymnasium.wrappers |     gymnasium.wrappers | returned None, expected a gymnasium.Env
a slip | Variable("doors" | Variable("dors" | 'dors' describes no entry
a shape | "doors", (2,) | "doors", (3,) | 'doors' has the shape \(3,\), but the entry of .* has \(2,\)
an exception |     maze = |     1 / 0\n    maze = | ^\S*env\.py, line 11: ZeroDivisionError: .* own code failed
""")


@pytest.mark.parametrize("case", MISMADE)
def test_mistakes_in_make_are_told(package: Path, tmp_path: Path, case: str) -> None:
    old, new, message = MISMADE[case]
    assert old in MAKE
    with pytest.raises(EnvironmentLoadError, match=message) as error:
        load_environment(str(write(tmp_path / "my_maze", env=MAKE.replace(old, new))))
    assert error.value.hint


NOT_INSTALLED = """
import sys
sys.modules["Box2D"] = None  # as where it is not installed
from eureka_agent.errors import EnvironmentLoadError
from eureka_agent.simulation.loading import load_environment
for name in ("LunarLander-v3", "Nope-v1", "Hoper-v5"):
    try:
        load_environment(f"gymnasium:{name}")
    except EnvironmentLoadError as error:
        print(error.message, "|", error.hint)
"""


def test_a_package_that_is_missing_is_named_with_its_extra() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", NOT_INSTALLED], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    lander, nothing, slip = ended.stdout.splitlines()
    assert lander == (
        "Gymnasium cannot make 'LunarLander-v3': it needs Box2D, which is not installed"
        f" | install it: {install_extra('gymnasium')}"
    )
    assert "pprint_registry" not in lander
    assert "did you mean" not in nothing
    assert slip.endswith("did you mean 'gymnasium:Hopper-v5'?")

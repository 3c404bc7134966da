"""Loading environment folders: what is found, and what is said of mistakes in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_environments import table

from eureka_agent.errors import EnvironmentLoadError, SettingsError
from eureka_agent.records import TaskDescription
from eureka_agent.search.preparation import effective_settings
from eureka_agent.simulation.loading import describe, load_environment

WriteFolder = Callable[..., Path]

ENV, TASK = "env.py", "tasks/go.py"


def test_a_folder_is_loaded_described_and_made(write_folder: WriteFolder) -> None:
    loaded = load_environment(str(write_folder()))
    assert (loaded.name, list(loaded.tasks)) == ("point_mass", ["go"])
    description = describe(loaded)
    assert (description.doc, description.details) == ("A point mass on a line.", "More about it.")
    names = [variable.name for variable in description.variables]
    assert names == ["actions", "terminated", "position", "state"]
    sizes = description.num_observations, description.max_episode_length, description.control_dt
    assert sizes == (2, 50, 0.1)
    assert description.human_reward is not None
    environment = loaded.make(loaded.task("go")[1], 6, seed=4)
    assert environment.limit == 4.0
    # made means reset: starts are drawn and no row waits for a reset
    assert len(set(environment.obs_buf[:, 0].tolist())) == 6
    assert not environment.reset_buf.any()


def test_fingerprint_depends_on_names_and_contents_but_not_on_caches_or_place(
    write_folder: WriteFolder, tmp_path: Path
) -> None:
    folder = write_folder()
    original = load_environment(str(folder)).fingerprint
    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__" / "env.cpython-311.pyc").write_bytes(b"x")
    (folder / ".hidden").write_text("x")
    moved = folder.rename(tmp_path / "elsewhere")
    assert load_environment(str(moved)).fingerprint == original
    (moved / "rewards" / "human.py").rename(moved / "rewards" / "human2.py")
    assert load_environment(str(moved)).fingerprint != original


def test_default_task_comes_first(write_folder: WriteFolder) -> None:
    task = TASK.replace("go", "{}")
    files = {
        task.format(name): (write_folder() / TASK).read_text()
        for name in ("away", "home", "wander")
    }
    folder = write_folder(
        (ENV, "import torch\n", 'import torch\n\nDEFAULT_TASK = "home"\n'),
        files={**files, TASK: None},
    )
    (folder / TASK).unlink()
    loaded = load_environment(str(folder))
    assert list(loaded.tasks) == ["home", "away", "wander"]
    assert loaded.task(None)[0] == "home"
    with pytest.raises(EnvironmentLoadError, match="no task 'hom'") as error:
        loaded.task("hom")
    assert error.value.hint == "did you mean 'home'?"


def test_unknown_references_are_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLoadError, match="no environment 'cartpol'") as error:
        load_environment("cartpol")
    assert "did you mean 'cartpole'?" in error.value.hint
    with pytest.raises(EnvironmentLoadError, match="no folder"):
        load_environment(str(tmp_path / "nothing"))
    with pytest.raises(EnvironmentLoadError, match=r"has no env\.py"):
        load_environment(str(tmp_path))


CONSTANTS = (
    ENV,
    "control_dt = 0.1",
    (
        'control_dt = 0.1\n    constants = (Constant("dt", 0.1, "s", "time step"),'
        ' Constant("gain", 2))'
    ),
)
IMPORTED = (ENV, "import Variable", "import Constant, Variable")


def test_constants_and_the_order_of_quaternions_are_described(write_folder: WriteFolder) -> None:
    plain = describe(load_environment(str(write_folder())))
    assert (plain.constants, plain.quaternion_order) == ((), "wxyz")
    changed = (ENV, "num_actions", 'quaternion_order = "xyzw"\n    num_actions')
    described = describe(load_environment(str(write_folder(IMPORTED, CONSTANTS, changed))))
    assert described.quaternion_order == "xyzw"
    assert [constant.model_dump() for constant in described.constants] == [
        {"name": "dt", "value": 0.1, "unit": "s", "doc": "time step"},
        {"name": "gain", "value": 2.0, "unit": "1", "doc": ""},
    ]
    assert TaskDescription.model_validate_json(described.model_dump_json()) == described


IMPOSSIBLE_CONSTANTS = table(r"""
a variable | Constant("gain", 2) | Constant("position", 2) | 'position'.*another variable's, constant's
a number | Constant("gain", 2) | 2 | 'constants.1' is 2, expected
quaternions | constants = | quaternion_order = "zyxw"\n    constants = | 'quaternion_order' is 'zyxw', expected wxyz or xyzw
""")


@pytest.mark.parametrize("case", IMPOSSIBLE_CONSTANTS)
def test_constants_that_cannot_be_are_told(write_folder: WriteFolder, case: str) -> None:
    old, new, message = IMPOSSIBLE_CONSTANTS[case]
    folder = write_folder(IMPORTED, CONSTANTS, (ENV, old, new))
    with pytest.raises(EnvironmentLoadError, match=message):
        load_environment(str(folder))


def test_environment_names_the_class_among_several(write_folder: WriteFolder) -> None:
    folder = write_folder()
    text = (folder / ENV).read_text() + "\n\nclass Heavier(PointMass):\n    num_observations = 2\n"
    (folder / ENV).write_text(text)
    with pytest.raises(EnvironmentLoadError, match="found PointMass, Heavier") as error:
        load_environment(str(folder))
    assert "ENVIRONMENT" in error.value.hint
    (folder / ENV).write_text(text + "\nENVIRONMENT = Heavier\n")
    assert load_environment(str(folder)).environment_class.__name__ == "Heavier"


MISTAKES = table(r"""
syntax | env\.py, line 10: SyntaxError | env.py | class PointMass(VecTask): | class PointMass(VecTask)
undefined name | env\.py, line 20: NameError.*'two' | env.py | num_observations = 2 | num_observations = two
no class | expected one subclass of VecTask .* found none | env.py | PointMass(VecTask) | PointMass
more choices than a policy has a use for | action_choices has 5,000 choices, expected at most 4,096 | env.py | num_actions = 1 | num_actions = 1\n    action_choices = (5000,)
variable's shape | shape of variable 'state' is 2 | env.py | (2,) | 2
endless step | 'control_dt' is inf, expected a finite number | env.py | control_dt = 0.1 | control_dt = float("inf")
a cause that is none | 'fell', which is none of its termination_causes | env.py | num_actions = 1 | num_actions = 1\n    termination_conditions = {"fell": "below 1 m"}
choices of another number | action_choices is \(2, 2\), expected 1 numbers | env.py | num_actions = 1 | num_actions = 1\n    action_choices = (2, 2)
success that is no number | success_fitness is nan | tasks/go.py | options= | success_fitness=float("nan"), options=
unknown reduction | fitness_reduction is 'total' | tasks/go.py | options= | fitness_reduction="total", options=
no steps | env_steps of a TrainingBudget is 0 | tasks/go.py | options= | training=__import__('eureka_agent.task').task.TrainingBudget(env_steps=0), options=
no Task | defines task = None | tasks/go.py | task = Task( | job = Task(
a number for variables | in the class PointMass 'variables' is 5, expected a list | env.py | num_actions = 1 | num_actions = 1\n    variables = 5
0, 51 for action_delay | 'action_delay' .* expected a range within 0 … 50, an | env.py | num_actions = 1 | num_actions = 1\n    from eureka_agent.task import Parameter\n    parameters = (Parameter('action_delay', '1', 0.0, 0, 51, 'delay'),)
BaseException('odd') in env.py | env\.py, line 6: BaseException: odd \(while importing env\.py\) | env.py | import torch\n | import torch\nimport asyncio\nraise BaseException('odd')\n
ValueError('A' * 10**6) in env.py | env\.py, line 6: ValueError: A{1000}… \(while importing env\.py\) | env.py | import torch\n | import torch\nimport asyncio\nraise ValueError('A' * 10**6)\n
'../x.py' as a reward | go\.py, line 9: a task's human_reward is '\.\./x\.py', expected a path within | tasks/go.py | options= | human_reward='../x.py', options=
a variable torch | variable name 'torch' cannot be an argument of a reward function | env.py | Variable("state" | Variable("torch"
unknown field | go\.py, line 9: TypeError.*sentense | tasks/go.py | sentence= | sentense=
""")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_place(write_folder: WriteFolder, mistake: str) -> None:
    message, *change = MISTAKES[mistake]
    with pytest.raises(EnvironmentLoadError, match=message) as error:
        load_environment(str(write_folder(tuple(change))))
    assert error.value.hint


def test_a_folder_without_tasks_or_with_an_unknown_default(write_folder: WriteFolder) -> None:
    with pytest.raises(EnvironmentLoadError, match="there is no task in"):
        load_environment(str(write_folder(files={TASK: None})))
    with pytest.raises(EnvironmentLoadError, match="DEFAULT_TASK is 'run'"):
        load_environment(
            str(write_folder((ENV, "import torch\n", 'import torch\nDEFAULT_TASK = "run"\n')))
        )


def test_links_may_lead_within_the_folder_and_to_it_but_not_out_of_it(
    write_folder: WriteFolder, tmp_path: Path
) -> None:
    """Rewards elsewhere could change without a new fingerprint, and are not where workers run."""
    folder = write_folder()
    (folder / "rewards" / "same.py").symlink_to("human.py")
    (tmp_path / "link").symlink_to(folder)
    before = load_environment(str(tmp_path / "link")).fingerprint
    human = folder / "rewards" / "human.py"
    human.write_text(f"{human.read_text()}\n")
    assert load_environment(str(tmp_path / "link")).fingerprint != before
    for part in ("rewards/human.py", "rewards"):
        (folder / part).rename(tmp_path / "elsewhere")
        (folder / part).symlink_to(tmp_path / "elsewhere")
        with pytest.raises(EnvironmentLoadError, match=r"is a link to .*elsewhere") as error:
            load_environment(str(folder))
        assert f"{str(folder / part)!r} is a link" in error.value.message
        (folder / part).unlink()
        (tmp_path / "elsewhere").rename(folder / part)
    assert load_environment(str(folder)).tasks


def test_what_describe_refuses(write_folder: WriteFolder) -> None:
    with pytest.raises(EnvironmentLoadError, match="reads 'previous_speed'") as error:
        describe(
            load_environment(str(write_folder((TASK, "previous_position):", "previous_speed):"))))
        )
    assert error.value.hint == "did you mean 'previous_state'?"
    changes = [
        (TASK, "import Task", "import Task, TrainingBudget"),
        (TASK, "options=", 'training=TrainingBudget(overrides={"horizons": 8}), options='),
    ]
    with pytest.raises(SettingsError, match="'horizons'") as settings_error:
        describe(load_environment(str(write_folder(*changes))))
    assert settings_error.value.hint == "did you mean 'horizon'?"


def test_a_task_may_train_otherwise_on_a_gpu(write_folder: WriteFolder) -> None:
    budget = (
        'TrainingBudget(env_steps=700, overrides={"epochs": 2, "clip": 0.1}, gpu={"epochs": 5})'
    )
    changes = [
        (TASK, "import Task", "import Task, TrainingBudget"),
        (TASK, "options=", f"training={budget}, options="),
    ]
    description = describe(load_environment(str(write_folder(*changes))))
    assert description.gpu_overrides == {"epochs": 5}
    sizes = {"env_steps": 700, "num_envs": 16, "clip": 0.1}
    assert description.training_on("cpu") == {**sizes, "epochs": 2}
    assert description.training_on("cuda:1") == {**sizes, "epochs": 5}
    on_gpu = effective_settings({}, description, "cuda")
    assert (on_gpu.epochs, on_gpu.clip, on_gpu.env_steps) == (5, 0.1, 700)
    assert effective_settings({"epochs": 4}, description, "cuda").epochs == 4


def test_baselines_may_be_absent_but_not_misnamed(write_folder: WriteFolder) -> None:
    loaded = load_environment(str(write_folder(files={"rewards/human.py": None})))
    task = loaded.task(None)[1]
    assert loaded.reward_source(task, "human") is None
    assert "compute_reward" in (loaded.reward_source(task, "sparse") or "")
    named = load_environment(
        str(write_folder((TASK, "options=", 'human_reward="rewards/hman.py", options=')))
    )
    with pytest.raises(EnvironmentLoadError, match=r"human_reward is 'rewards/hman\.py'"):
        named.reward_source(named.task(None)[1], "human")


def test_options_and_errors_of_the_constructor(write_folder: WriteFolder) -> None:
    loaded = load_environment(str(write_folder((TASK, '"limit": 4.0', '"limits": 4.0'))))
    with pytest.raises(EnvironmentLoadError, match=r"options .*'limits'"):
        loaded.make(loaded.task(None)[1], 2)
    broken = load_environment(
        str(write_folder((ENV, "self.limit = limit", "self.limit = limit / 0")))
    )
    with pytest.raises(EnvironmentLoadError, match=r"env\.py, line \d+: ZeroDivisionError"):
        broken.make(broken.task(None)[1], 2)


def test_the_fingerprint_of_a_task_is_of_its_own_files(write_folder: WriteFolder) -> None:
    folder = write_folder()
    before = describe(load_environment(str(folder)), "go")
    (folder / "tasks" / "stay.py").write_text(
        (folder / "tasks" / "go.py")
        .read_text()
        .replace("task = Task(", 'task = Task(human_reward="rewards/stay.py", ')
    )
    (folder / "rewards" / "stay.py").write_text((folder / "rewards" / "human.py").read_text())
    now = describe(load_environment(str(folder)), "go")
    assert (now.fingerprint, now.files) == (before.fingerprint, before.files)
    assert describe(load_environment(str(folder)), "stay").fingerprint != before.fingerprint
    assert set(before.files) == {"env.py", "tasks/go.py", "rewards/human.py", "rewards/sparse.py"}
    (folder / "rewards" / "human.py").write_text("# other\n")
    changed = describe(load_environment(str(folder)), "go")
    assert changed.fingerprint != before.fingerprint
    assert {name for name in before.files if changed.files[name] != before.files[name]} == {
        "rewards/human.py"
    }


# ── files that environments share ─────────────────────────────────────────────────────────────────


def shared(folder: Path, **files: str) -> Path:
    """Write `_shared` beside a folder."""
    place = folder.parent / "_shared"
    place.mkdir(exist_ok=True)
    for name, text in files.items():
        (place / f"{name}.py").write_text(text)
    return place


IMPORTED_LIMIT = (
    (ENV, "import torch\n", "import torch\n\nfrom .limits import LIMIT\n"),
    (ENV, "limit=5.0", "limit=LIMIT"),
    (TASK, '{"limit": 4.0}', "{}"),
)


def test_environments_side_by_side_share_files(write_folder: WriteFolder) -> None:
    folder = write_folder(*IMPORTED_LIMIT)
    shared(folder, limits="from .numbers import NINE\nLIMIT = NINE\n", numbers="NINE = 9.0\n")
    loaded = load_environment(str(folder))
    assert loaded.make(loaded.task(None)[1], 1).limit == 9.0
    # a file of its own with that name comes first
    (folder / "limits.py").write_text("LIMIT = 3.0\n")
    loaded = load_environment(str(folder))
    assert loaded.make(loaded.task(None)[1], 1).limit == 3.0


def test_shared_files_count_where_they_are_imported(write_folder: WriteFolder) -> None:
    folder = write_folder(*IMPORTED_LIMIT)
    place = shared(
        folder, limits="from .numbers import NINE\nLIMIT = NINE\n", numbers="NINE = 9.0\n"
    )
    before = describe(load_environment(str(folder)))
    assert {name for name in before.files if "_shared" in name} == {
        "../_shared/limits.py",
        "../_shared/numbers.py",
    }
    shared(folder, other="OTHER = 1\n")
    assert describe(load_environment(str(folder))) == before
    (place / "numbers.py").write_text("NINE = 8.0\n")
    assert describe(load_environment(str(folder))).fingerprint != before.fingerprint
    alone = describe(load_environment(str(write_folder())))
    assert not [name for name in alone.files if "_shared" in name]

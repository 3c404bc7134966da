"""Faults of a person's Gymnasium environment: what is said names the person's class, file and line,
and what belongs there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from faulty_environments import grouped, line_of, table

from eureka_agent.errors import EnvironmentFaultError, EnvironmentLoadError
from eureka_agent.simulation.loading import describe, load_environment
from eureka_agent.training.conformance import CheckResult, check_environment
from eureka_agent.training.environment_faults import loading_limit

SLIDER = '''
import gymnasium
import numpy as np
from gymnasium import spaces


class Slider(gymnasium.Env):
    observation_space = spaces.Dict(place=spaces.Box(-9.0, 9.0, (2,), np.float32), load=spaces.Box(-9.0, 9.0, ()))
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    made = 0

    def look(self):
        return {"place": np.array([self.x, 0.0], np.float32), "load": np.float32(1.0)}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count, self.x = 0, self.np_random.uniform(-0.1, 0.1)
        return self.look(), {"distance": abs(self.x)}

    def step(self, action):
        self.count += 1
        Slider.made += 1
        self.x += 0.01 * float(action[0])
        observation, reward, info = self.look(), -abs(self.x), {"distance": abs(self.x)}
        pass
        return observation, reward, False, False, info


def make():
    """A slider on a rail."""
    return Slider()
'''
STEP, RESET, LATE = "    def step(self", "    def reset(self", "        pass\n"
STEP_RETURN, RESET_RETURN = (
    "return observation, reward, False, False, info",
    'return self.look(), {"distance": abs(self.x)}',
)


def write(folder: Path, *changes: tuple[str, str], source: str = SLIDER) -> Path:
    folder.mkdir()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    (folder / "env.py").write_text(source)
    return folder


def at(folder: Path, part: str) -> str:
    """`<file>, line <n>: ` of the first line with `part` in it."""
    return f"{folder / 'env.py'}, line {line_of((folder / 'env.py').read_text(), part)}: "


def check(folder: Path, limit_s: float = 60.0) -> list[CheckResult]:
    return check_environment(str(folder), rollout_s=0.1, limit_s=limit_s)


WRONG = table(r"""
four values | return observation, reward, False, False, info | return observation, reward, False, info |     def step(self | step returned 4 values, expected 5
reward None | return observation, reward, False, False, info | return observation, None, False, False, info |     def step(self | step gave None as reward
a shape | np.array([self.x, 0.0], np.float32) | np.zeros(3, np.float32) |     def reset(self | reset gave an observation that is not in its observation_space: it has 4 numbers, and the space 3
""")


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_result_of_another_form_is_said_of_who_wrote_it(
    tmp_path: Path, fault: str, wrapped: bool
) -> None:
    """This also holds if one of Gymnasium's wrappers is the first that cannot take it."""
    old, new, method, said = WRONG[fault]
    changes = [(old, new)]
    if wrapped:
        changes.append(("return Slider()", "return gymnasium.wrappers.TimeLimit(Slider(), 30)"))
        said = (
            said
            if fault != "four values"
            else "step returned what Gymnasium's TimeLimit cannot take: ValueError"
        )
    folder = write(tmp_path / "slider", *changes)
    (result,) = check(folder)
    assert result.actual.startswith(f"{at(folder, method)}Slider.")
    assert said in result.actual
    assert "gymnasium_" not in result.actual
    assert result.hint.startswith(
        ("end step with `return observation, reward, term", "end reset with", "return what")
    )


NOT_CALLABLE = table(r"""
a wrapper's reset | def reset(self): | Plain.reset cannot be called | and pass both on to self.env | def make() | class Plain(gymnasium.Wrapper):\n    def reset(self):\n        return self.env.reset()\n\n\ndef make() | return Slider() | return Plain(Slider())
step |     def step(self | Slider.step cannot be called as Gymnasium calls it: Slider.step() missing 1 required positional argument: 'dt' | write `def step(self, action)` |     def step(self, action) |     def step(self, action, dt)
no space | class Slider | Slider has no observation_space | set self.observation_space |     observation_space = |     space =
no instance | def make() | returned the class Slider, expected a gymnasium.Env | one instance of a subclass of gymnasium.Env | return Slider() | return Slider
actions that it does not take |         assert abs | AssertionError: [ | every action of its action_space |         pass\n |         assert abs(action[0]) < 0.9, action\n
one of two | class Slider | is a OneOf(Discrete(2)), whose parts have no names | makes a Dict of it | load=spaces.Box(-9.0, 9.0, ()) | load=spaces.OneOf([spaces.Discrete(2)])
""")


@pytest.mark.parametrize("fault", NOT_CALLABLE)
def test_what_gymnasium_cannot_use_is_said_of_the_person_s_line(tmp_path: Path, fault: str) -> None:
    part, said, hint, *changes = NOT_CALLABLE[fault]
    folder = write(tmp_path / "slider", *grouped(changes))
    with pytest.raises(EnvironmentLoadError) as found:
        load_environment(str(folder))
    assert found.value.message.startswith(at(folder, part))
    assert said in found.value.message
    assert hint in found.value.hint


SOUND = table(r"""
a text within an entry | load=spaces.Box(-9.0, 9.0, ()) | load=spaces.Dict({0: spaces.Box(-9.0, 9.0, ()), 1: spaces.Text(5)}) | np.float32(1.0) | {0: np.float32(1.0), 1: 'full'}
tensors | return observation, reward, False, False, info | import torch\n        none = torch.tensor([False])\n        return observation, torch.tensor(reward), none, none, info
pumps without a limit | spaces.Box(-1.0, 1.0, (1,), np.float32) | spaces.Box(0.0, np.finfo(np.float32).max, (1,)) |         pass\n |         assert 0 <= action[0] <= 2, action\n
""")


@pytest.mark.parametrize("form", SOUND)
def test_an_unusual_form_is_no_fault(tmp_path: Path, form: str) -> None:
    folder = write(tmp_path / "slider", *grouped(SOUND[form]))
    assert [result.actual for result in check(folder) if not result.passed] == []
    described = describe(load_environment(str(folder)))
    assert described == describe(load_environment(str(folder)))


@pytest.mark.parametrize("given", ["None", "10**400"])
def test_a_number_of_info_that_becomes_none_is_said(tmp_path: Path, given: str) -> None:
    folder = write(
        tmp_path / "slider",
        (LATE, f"        info = {{'distance': {given} if self.count > 2 else 0.0}}\n"),
    )
    errors = [result.actual for result in check(folder) if not result.passed]
    begun = "1000" if given == "10**400" else given
    assert errors[0].startswith(f"{at(folder, STEP)}Slider.step gave {begun}")
    assert " as info['distance'], expected a number" in errors[0]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("observation['place'][1] = np.nan", "the observation, entry 'place', index 1 is nan"),
        ("reward = -np.inf", "the reward is -inf"),
        ("info = {'distance': np.nan}", "the number info['distance'] is nan"),
    ],
)
def test_nan_after_actions_that_are_numbers_is_the_environment_s(
    tmp_path: Path, code: str, said: str
) -> None:
    """The fault comes in the 81st step of an episode, which `envs --check` reaches too. It reaches
    one before 250 steps on loading."""
    folder = write(
        tmp_path / "slider", (LATE, f"        if self.count > 80:\n            {code}\n")
    )
    first = next(result for result in check(folder) if not result.passed)
    assert first.actual.startswith(f"{at(folder, STEP)}{said} in step 81 of an episode")
    assert "Slider.step" in first.actual


# ── loops ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", [STEP, RESET])
def test_a_loop_that_never_ends_is_named_when_it_is_loaded(tmp_path: Path, method: str) -> None:
    anchor = "        self.count += 1\n" if method == STEP else "        super().reset(seed=seed)\n"
    folder = write(tmp_path / "slider", (anchor, f"{anchor}        while True: pass\n"))
    (result,) = check(folder, limit_s=0.5)
    name = "step" if method == STEP else "reset"
    place = f"{at(folder, 'while True')[:-2]}, in {name}: "
    assert result.actual == f"{place}it did not end within 0.5 s"
    # in a run: a worker loads it
    with (
        pytest.raises(
            EnvironmentFaultError, match=re.escape(f"{place}it did not end within 0.4 s")
        ),
        loading_limit(0.4),
    ):
        load_environment(str(folder))


# ── length and time step ──────────────────────────────────────────────────────────────────────────


TAKEN = table(r"""
nothing | 1000 | 1.0 | length guessed: 1000 steps | time step guessed: 1 s
spec and frames | 40 | 0.05 | length from max_episode_steps of its registration | time step from metadata["render_fps"] | made = 0 | made = 0\n    spec = gymnasium.envs.registration.EnvSpec('S-v0', max_episode_steps=40)\n    metadata = {'render_fps': 20}
truncates sooner than its wrapper | 60 | 1.0 | after 60 steps, sooner than the 200 steps from its wrapper TimeLimit | guessed | return observation, reward, False, False, info | return observation, reward, False, self.count >= 60, info | return Slider() | return gymnasium.wrappers.TimeLimit(Slider(), 200)
goes to its attribute | 49 | 1.0 | length from its attribute max_steps | guessed | made = 0 | made, max_steps = 0, 49
truncates by chance | 1000 | 1.0 | length guessed | time step guessed | return observation, reward, False, False, info | return observation, reward, False, Slider.made in (30, 90), info
""")


@pytest.mark.parametrize("given", TAKEN)
def test_length_and_time_step_are_read_where_they_stand(tmp_path: Path, given: str) -> None:
    length, seconds, *sources = TAKEN[given][:4]
    folder = write(tmp_path / "slider", *grouped(TAKEN[given][4:]))
    described = describe(load_environment(str(folder)))
    assert (described.max_episode_length, described.control_dt) == (int(length), float(seconds))
    for source in sources:
        assert source in described.episode_source


def test_the_check_says_what_was_guessed_and_nothing_of_what_is_not_there(tmp_path: Path) -> None:
    results = {result.name: result for result in check(write(tmp_path / "slider"))}
    assert results["episode"].severity == "warning"
    assert "CONTROL_DT" in results["episode"].hint
    assert not {"resets on a GPU", "steps on a GPU", "rows are restored"} & set(results)
    known = write(
        tmp_path / "known",
        ("def make()", "MAX_EPISODE_LENGTH = 70\nCONTROL_DT = 0.02\n\n\ndef make()"),
    )
    assert {result.name: result.severity for result in check(known)}["episode"] == "ok"


def test_a_row_s_numbers_do_not_depend_on_a_neighbour_s_broken_actions(tmp_path: Path) -> None:
    loaded = load_environment(str(write(tmp_path / "slider")))
    _, task = loaded.task(None)
    whole, broken = loaded.make(task, 2), loaded.make(task, 2)
    for step in range(3):
        actions = torch.tensor([[0.5], [0.1 * step]])
        one = whole.advance(actions)
        actions[0] = torch.nan
        other = broken.advance(actions)
        assert torch.equal(one.observations[1], other.observations[1])
        assert bool(other.observations[0].isnan().all())

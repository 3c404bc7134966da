"""Gymnasium's Pendulum and CartPole with trainers of Stable-Baselines3, by the protocol alone."""

from __future__ import annotations

import shutil
import zipfile
from typing import Any

import gymnasium
import numpy as np
import pytest
from job_folders import PROGRAMS, JobFolder, MakeFolder

FITNESS = "def compute_fitness(cosine, velocity, previous_velocity):\n    return cosine + 0.1 * (velocity - previous_velocity)\n"
REWARD = """
def compute_reward(cosine, previous_cosine, actions):
    effort = -0.1 * actions.square().sum(dim=-1)
    rise = cosine - previous_cosine
    return cosine + effort + rise, {"upright": cosine, "effort": effort, "rise": rise}
"""


def trained(folder: JobFolder, seed: int = 1, **changes: Any) -> list[dict[str, Any]]:
    folder.train(1000, REWARD, seed=seed, rungs=[300], **changes.pop("entry", {}))
    folder.call("pendulum", **changes)
    return folder.events()


def test_a_training_ends_with_policies_and_its_curve_has_all_steps(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    events = trained(made)
    curves = made.events("curve")
    # rollouts of 4 environments with 64 steps: 1,000 env steps take four of them
    assert events[-1]["env_steps"] == curves[-1]["env_steps"] == 1024
    assert [each["env_steps"] for each in events[-1]["policies"]] == [300, 1024]
    # all episodes last 200 steps: four ended, all at once
    ended = [each for each in curves if each["episodes"]]
    assert [(each["env_steps"], each["ends"], each["episode_length"]) for each in ended] == [
        (896, {"time_out": 4}, 200.0)  # told with the next of every 128 steps
    ]
    for curve in curves:
        means = {name: term["mean"] for name, term in curve["terms"].items()}
        assert sum(means.values()) == pytest.approx(curve["reward"], abs=1e-5)
        assert means["effort"] == pytest.approx(-curve["terms"]["effort"]["magnitude"])
        assert -0.1 <= means["effort"] < 0  # the variable is in [-1, 1], the torque in [-2, 2]


def test_equal_seeds_train_the_same_bit_by_bit_and_a_state_goes_on(folder: MakeFolder) -> None:
    first, again, other = (folder(FITNESS, name) for name in ("first", "again", "other"))
    first.train(1000, REWARD, rungs=[300], id="a")
    process = first.run(PROGRAMS / "pendulum.py")
    assert (process.returncode, len(process.stdout) > 10**6) == (0, True)
    assert trained(again) == first.events()
    assert trained(other, seed=2) != first.events()
    with_same = [np.load(each.path / "policy-a-end.npz") for each in (first, again)]
    for name in with_same[0].files:
        np.testing.assert_array_equal(with_same[0][name], with_same[1][name])


def test_a_request_is_answered_and_a_state_goes_on(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    request = made.path / "requests" / "save"
    request.touch()
    trained(made)
    (saved,) = made.events("saved")
    assert saved["env_steps"] == 0  # weights of the rollout that had begun
    request.unlink()
    made.train(1500, REWARD, save_every_s=0)
    made.call("pendulum")
    # the weights change with each rollout of 256
    assert {each["env_steps"] for each in made.events("saved")} == set(range(0, 1500, 256))
    shutil.copy(made.path / "state-a-1280.pt", made.path / "kept.pt")
    made.train(1500, REWARD, state="kept.pt", rungs=[300, 1400])
    made.call("pendulum")
    steps = [each["env_steps"] for each in made.events("curve")]
    assert (steps[0], steps[-1]) == (1280 + 128, 1536)
    (event,) = made.events("trained")
    assert [each["env_steps"] for each in event["policies"]] == [1400, 1536]


def test_an_evaluation_acts_as_the_weights_say_without_a_reward(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    policy = trained(made)[-1]["policies"][-1]["policy"]
    with zipfile.ZipFile(made.path / policy) as file:
        for name in file.namelist():
            assert file.open(name).read(6) == b"\x93NUMPY"
    arrays = np.load(made.path / policy, allow_pickle=False)
    made.evaluate(policy, record=[1, 5])
    made.write("reward.py", "raise SystemExit('loaded')")
    made.call("pendulum")
    recorded = [each for each in made.events("episode") if "values" in each]
    assert [each["number"] for each in recorded] == [1, 5]
    env = gymnasium.make("Pendulum-v1")
    for episode in recorded:
        start, values = episode["start"], episode["values"]
        env.reset()
        env.unwrapped.state = np.array(
            [np.arctan2(start["sine"], start["cosine"]), start["velocity"]]
        )
        state = [start["cosine"], start["sine"], start["velocity"]]
        fitness, speed = 0.0, start["velocity"]
        for step, (action,) in enumerate(values["actions"]):
            x = np.clip(
                (np.array(state) - arrays["/mean"]) / np.sqrt(arrays["/var"] + 1e-8), -10, 10
            )
            for layer in ("mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2"):
                x = np.tanh(arrays[f"{layer}.weight"] @ x + arrays[f"{layer}.bias"])
            x = arrays["action_net.weight"] @ x + arrays["action_net.bias"]
            assert action == pytest.approx(float(np.clip(x[0], -1, 1)), abs=1e-4)
            observation, *_ = env.step(np.array([2 * action], dtype=np.float32))
            state = [values[name][step] for name in ("cosine", "sine", "velocity")]
            np.testing.assert_allclose(observation, state, atol=1e-3)
            # small differences would grow: each step begins where the recorded one ended
            env.unwrapped.state = np.array([np.arctan2(state[1], state[0]), state[2]])
            fitness += state[0] + 0.1 * (state[2] - speed)
            speed = state[2]
        assert episode["length"] == 200
        assert episode["fitness"] == pytest.approx(fitness, abs=1e-3)


def test_start_states_follow_from_seed_and_number_alone(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    policy = trained(made)[-1]["policies"][-1]["policy"]
    starts = {}
    for num_envs, episodes, seed in ((4, 6, 3), (1, 2, 3), (4, 6, 4)):
        made.evaluate(policy, num_envs, record=[0, 1], episodes=episodes, seed=seed)
        made.call("pendulum")
        starts[num_envs, seed] = [each["start"] for each in made.events("episode")[:2]]
    assert starts[4, 3] == starts[1, 3]
    assert starts[4, 4] != starts[4, 3]


def test_a_reward_that_raises_in_the_middle_ends_the_process_with_its_line(
    folder: MakeFolder,
) -> None:
    made = folder(FITNESS)
    made.train(
        1000,
        "def compute_reward(cosine):\n    if cosine[0] < -0.5:\n        raise ValueError('low')\n    return cosine, {'c': cosine}\n",
    )
    process = made.run(PROGRAMS / "pendulum.py")
    assert process.returncode == 1
    fault = made.events()[-1]
    assert (fault["event"], fault["whose"], fault["training"], fault["line"]) == (
        "fault",
        "reward",
        "a",
        3,
    )
    assert fault["message"] == "reward.py, line 3: ValueError: low"


def test_faults_in_a_training_are_the_simulators_or_the_trainers(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    made.train(1000, REWARD)
    with pytest.raises(TypeError) as caught:
        made.call("pendulum", hyperparameters={"n_step": 1})
    assert caught.value.whose == "trainer"  # type: ignore[attr-defined]
    made.train(1000, "def compute_reward(pole_angle):\n    return pole_angle, {}\n")
    made.write("fitness.py", "def compute_fitness(pole_angle):\n    return pole_angle\n")
    with pytest.raises(IndexError) as broken:
        made.call("cart", cause=lambda env: [][0])
    assert broken.value.whose == "environment"  # type: ignore[attr-defined]


def test_choices_causes_and_an_algorithm_with_a_replay_buffer(folder: MakeFolder) -> None:
    made = folder("def compute_fitness(pole_angle):\n    return pole_angle * 0 + 1\n")
    made.job("describe", episodes=2, most_steps=100)
    made.call("cart")
    described, *episodes = made.events()
    assert (described["num_actions"], described["action_choices"]) == (1, [2])
    assert (described["control_dt"], described["max_episode_length"]) == (0.02, 60)
    assert {each["ended_by"] for each in episodes} == {"fell"}
    assert episodes[0]["length"] == episodes[0]["fitness"] == len(episodes[0]["values"]["cart"])
    assert episodes[0]["values"]["terminated"][-2:] == [0.0, 1.0]
    # one choice has no dimension of its own
    assert {each["by"]: set(each["values"]["actions"]) for each in episodes} == {
        "zero": {0.0},
        "random": {0.0, 1.0},
    }

    reward = "def compute_reward(pole_angle, actions, terminated):\n    return -terminated, {'fall': -terminated, 'act': actions * 0}\n"
    made.train(400, reward, rungs=[200])
    made.call("cart")
    assert sum(each["ends"].get("fell", 0) for each in made.events("curve")) > 4
    lengths = [each for each in made.events("curve") if each["episodes"]]
    assert all(each["fitness"] == each["episode_length"] for each in lengths)
    policy = made.events("trained")[0]["policies"][-1]["policy"]
    made.evaluate(policy, record="extremes")
    made.call("cart")
    recorded = [each for each in made.events("episode") if "values" in each]
    assert {action for each in recorded for action in each["values"]["actions"]} <= {0, 1}


def test_sac_goes_on_from_a_state_with_all_its_tensors(folder: MakeFolder) -> None:
    import torch

    made = folder(FITNESS)
    settings = {"learning_starts": 40, "gradient_steps": -1, "buffer_size": 500}
    changes = {"algorithm": "SAC", "hyperparameters": settings, "normalize": False}
    made.train(120, REWARD, save_every_s=0)
    made.call("pendulum", **changes)
    last = made.events("saved")[-1]
    state = torch.load(made.path / last["state"], weights_only=True)
    assert state["env_steps"] == last["env_steps"] == 116
    made.train(116, REWARD, state=last["state"])
    made.call("pendulum", **changes)
    (event,) = made.events("trained")
    arrays = np.load(made.path / event["policies"][-1]["policy"])
    for name, tensor in state["parameters"]["policy"].items():
        np.testing.assert_array_equal(arrays[name], tensor.numpy())
    assert state["tensors"]["log_ent_coef"].item() != 0.0


def test_a_cancelled_training_stops_without_an_answer(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    (made.path / "requests" / "cancel-a").touch()
    trained(made)
    assert made.events() == []


def test_a_film_has_the_size_and_length_that_are_asked(folder: MakeFolder) -> None:
    made = folder(FITNESS)
    policy = trained(made)[-1]["policies"][-1]["policy"]
    entry = {"id": "p", "policy": policy, "seed": 3, "episodes": 2, "record": [1]}
    made.job("film", policies=[entry], size=[64, 48], most_steps=8, every=2)
    made.call("pendulum")
    (event,) = made.events()
    assert event == {"event": "filmed", "policy": "p", "number": 1, "pictures": "pictures-p-1.rgb"}
    pictures = np.fromfile(made.path / event["pictures"], np.uint8).reshape(-1, 48, 64, 3)
    assert len(pictures) == 4  # a step before the end the film is over
    # the picture is square: borders to the left and the right, the pendulum's white between
    assert pictures[:, :, :8].max() == 0
    assert pictures[:, 0, 8:56].min() > 200
    assert (pictures[0] != pictures[-1]).any()

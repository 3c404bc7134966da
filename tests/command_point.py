"""Script of a command environment, by the bare protocol (docs/protocol.md): a point on a line, and a
random search over linear policies. `FAULT` in its environment makes it misbehave."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

STEPS, DT = 50, 0.1
FOLDER = Path(sys.argv[-1])
JOB = json.loads((FOLDER / "job.json").read_text())
FAULT = os.environ.get("FAULT", "")
EVENTS = (FOLDER / "events.jsonl").open("a")
Values = dict[str, np.ndarray]


def tell(event: str, **fields: Any) -> None:
    EVENTS.write(json.dumps({"event": event, **fields}) + "\n")
    EVENTS.flush()


def function(file: str, name: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"torch": torch}
    exec(compile((FOLDER / file).read_text(), FOLDER / file, "exec"), space)
    return space[name]


def called(chosen: Callable[..., Any], values: Values) -> Any:
    names = inspect.signature(chosen).parameters
    if unknown := [name for name in names if name not in values]:
        tell("fault", whose="reward", message=f"there is no variable {unknown[0]!r}", training="0")
        sys.exit(1)
    return chosen(**{name: torch.as_tensor(values[name], dtype=torch.float32) for name in names})


FITNESS = function(JOB["fitness"]["file"], "compute_fitness")


def play(act: Callable[[Values], np.ndarray], seed: int, episodes: int) -> list[Values]:
    """The start and STEPS states. Shape of each value: (episodes,), of actions (episodes, 1)."""
    drawn = [np.random.default_rng([seed, number]).uniform(-1, 1, 2) for number in range(episodes)]
    position, target = np.array(drawn).T
    velocity, action = np.zeros(episodes), np.zeros(episodes)
    states = []
    for step in range(STEPS + 1):
        if step:
            action = np.clip(act(states[-1]), -1, 1)
            velocity = 0.9 * velocity + DT * action
            position = position + 0.5 * velocity
        state = {"position": position, "velocity": velocity, "to_target": target - position}
        ends = {"actions": action[:, None], "terminated": np.zeros(episodes)}
        states.append({**state, "distance": np.abs(target - position), **ends})
    return states


def linear(weights: np.ndarray) -> Callable[[Values], np.ndarray]:
    return lambda state: state["to_target"] * weights[0] + state["velocity"] * weights[1]


def together(states: list[Values]) -> Values:
    return {name: np.concatenate([state[name] for state in states]) for name in states[0]}


def tell_episodes(by: str, states: list[Values], record: Any) -> None:
    start, steps = states[0], states[1:]
    fitness = called(FITNESS, together(steps)).reshape(STEPS, -1).numpy()
    means = fitness.mean(axis=0)
    extremes = {int(means.argmin()), int(means.argmax())}
    chosen = extremes if record == "extremes" else record
    for number, mean in enumerate(means):
        more = {}
        if number in chosen:
            values = {name: [step[name][number].tolist() for step in steps] for name in start}
            if FAULT == "shape":
                values["distance"] = [[each, each] for each in values["distance"]]
            if FAULT == "nan":
                values["distance"][3] = float("nan")
            more = {"start": {name: each[number].tolist() for name, each in start.items()}}
            more |= {"values": values, "fitness_steps": fitness[:, number].tolist()}
        told = {"by": by, "number": number, "length": STEPS, "ended_by": "time_out"}
        tell("episode", **told, fitness=float(mean), **more)


def describe() -> None:
    def variable(name: str, unit: str, doc: str) -> dict[str, Any]:
        return {"name": name, "shape": [], "unit": unit, "frame": "world", "doc": doc}

    variables = [
        variable("position", "m", "position of the point"),
        variable("velocity", "m/s", "velocity of the point"),
        variable("to_target", "m", "distance to the target, with its direction"),
        variable("distance", "m", "distance to the target"),
    ]
    if FAULT == "names":
        variables[0]["name"] = "no name"
    tell(
        "described",
        protocol=2 if FAULT == "protocol" else 1,
        doc="A point on a line that an action pushes.",
        variables=variables,
        num_observations=2,
        num_actions=1,
        action_choices=[],
        control_dt=DT,
        max_episode_length=STEPS,
        ends={},
        versions={"numpy": np.__version__},
        can={"rungs": True, "save": True, "film": True, "dry_run": False, "rewards": 1},
    )
    episodes, noise = JOB["episodes"], np.random.default_rng(0)
    everyone = range(episodes)
    tell_episodes("zero", play(lambda state: 0 * state["velocity"], 1, episodes), everyone)
    drawn = play(lambda state: noise.uniform(-1, 1, len(state["velocity"])), 2, episodes)
    tell_episodes("random", drawn, everyone)


def train(training: dict[str, Any]) -> None:
    reward, name = function(training["reward"], "compute_reward"), training["id"]
    best, score, done = np.zeros(2), -np.inf, 0
    if training["state"] is not None:
        best, (score, done) = np.load(FOLDER / training["state"]).reshape(2, 2)
        done = int(done)
    rungs, rows = [each for each in training["rungs"] if each > done], JOB["num_envs"]
    while done < JOB["env_steps"]:
        if FAULT == "slow":
            time.sleep(0.05)
        noise = np.random.default_rng([training["seed"], done])
        trial = best + noise.normal(size=2)
        steps = play(linear(trial), training["seed"] + done, rows)[1:]
        total, terms = called(reward, together(steps))
        done += rows * STEPS
        if total.shape != (rows * STEPS,) or not torch.isfinite(total).all():
            what = f"the total has the shape {tuple(total.shape)}, or is not finite"
            tell("fault", whose="reward", training=name, message=what, line=2)
            sys.exit(1)
        if float(total.mean()) > score:
            best, score = trial, float(total.mean())
        fitness = called(FITNESS, together(steps)).reshape(STEPS, rows).mean(dim=0)
        numbers = {
            term: {
                "mean": float(each.mean()),
                "magnitude": float(each.abs().mean()),
                "deviation": float(each.std()),
            }
            for term, each in terms.items()
        }
        told = {"fitness": float(fitness.mean()), "episode_length": STEPS, "episodes": rows}
        told |= {"reward": float(total.mean()), "terms": numbers, "ends": {"time_out": rows}}
        tell("curve", training=name, env_steps=done, **told)
        while rungs and done >= rungs[0]:
            rung = rungs.pop(0)
            tell("rung", training=name, env_steps=rung, policy=policy(f"rung-{rung}", best))
        asked = FOLDER / "requests" / "save"
        if asked.exists() or JOB["save_every_s"] < 1:
            asked.unlink(missing_ok=True)
            state = policy(f"state-{done}", np.stack([best, [score, done]]))
            tell("saved", training=name, env_steps=done, state=state)
    if FAULT != "no policy":
        last = {"env_steps": done, "policy": policy("last", best)}
        tell("trained", training=name, env_steps=done, policies=[last])


def policy(name: str, array: np.ndarray) -> str:
    np.save(FOLDER / f"{name}.npy", array)
    return f"{name}.npy"


def film(name: str, states: list[Values], record: list[int]) -> None:
    width, height = JOB["size"]
    for number in record:
        pictures = np.full((len(states[:: JOB["every"]]), height, width, 3), 240, np.uint8)
        for picture, state in zip(pictures, states[:: JOB["every"]], strict=True):
            place = int(np.clip((state["position"][number] + 2) / 4 * width, 0, width - 10))
            picture[height // 2 :, place : place + 10] = 30
        pictures.tofile(FOLDER / f"film-{name}-{number}")
        tell("filmed", policy=name, number=number, pictures=f"film-{name}-{number}")


def misbehave() -> None:
    """Do something wrong before the work."""
    print("the point begins to move")
    match FAULT:
        case "writes":
            try:
                Path(os.environ["PLACE"], "cache").write_text("compiled")
            except OSError as error:
                sys.exit(repr(error))
        case "hang":
            time.sleep(3600)
        case "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        case "status":
            sys.exit("no license for this simulator")
        case "port":
            raise OSError(98, "Address already in use")
        case "flood":
            EVENTS.write("x" * (17 << 20))
            EVENTS.flush()
            time.sleep(3600)
        case "no event":
            EVENTS.write("hello\n")
        case "child":
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
        case "prints":
            for _ in range(3000):
                print("x" * 1000)


if os.environ.get("FAULTY_MODE", JOB["mode"]) == JOB["mode"]:
    misbehave()
if JOB["mode"] == "describe":
    describe()
elif JOB["mode"] == "train":
    train(JOB["trainings"][0])
else:
    for each in JOB["policies"]:
        weights = np.load(FOLDER / each["policy"], allow_pickle=False)
        played = play(linear(weights), each["seed"], each["episodes"])
        if JOB["mode"] == "evaluate":
            tell_episodes(each["id"], played, each["record"])
            tell("evaluated", policy=each["id"])
        else:
            film(each["id"], played, each["record"])

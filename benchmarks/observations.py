"""Worth of designing the reward, the observation, or both (LIMEN's question), where the
environment's own observation is good and where it was made bad on purpose.

    python benchmarks/observations.py --worse FOLDER
    python benchmarks/observations.py --runs ARM=FOLDER …
    python benchmarks/observations.py --speed

`--worse` writes two environments: a ball on a tray whose policy is not told where the goal is, and
a hopper whose policy sees no velocities. Searches on them and on the environments that they come
from are run by `eureka search --design …`, with a model and equal trainings; `--runs` counts stored
ones and adds them to the results, with the human reward on the environment's own observation, of
the run, of a run for the arm `human` alone, or of the task's card. `--speed` gives the processor
time of eight trainings whose observation is designed, as a share of that of eight on the
environment's own, in turns.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from pathlib import Path
from typing import Any

from _common import Subject, start, subject
from _results import RESULTS, write_result
from designer_tools import counted

from eureka_agent.archive.run_folder import find_run, open_run
from eureka_agent.cards import read_card
from eureka_agent.resources import resource_folder
from eureka_agent.rewards import MOST_OBSERVATIONS
from eureka_agent.search.summary import run_report
from eureka_agent.training.reward import RewardFunction
from eureka_agent.training.trainer import Trainer

WORSE = {
    "ball_balance": ("BallBalance", "goal"),
    "hopper": ("Hopper", "velocit"),
}
"""Class of each environment, and a part of the names of the observed quantities that go."""
SEEN = {
    "hopper/run": ("torso_height", "torso_pitch", "joint_positions", "joint_velocities"),
    "craft/hunt_cow": ("cow_distance", "cow_hits", "tree_distance", "table_near"),
}
"""Variables of an observation whose time is taken."""
PATCH = """


def _without(cls, word):
    sizes = [len(each.entries) or 1 for each in cls.observation_channels]
    named = [each.name for each, size in zip(cls.observation_channels, sizes) for _ in range(size)]
    kept = [place for place, name in enumerate(named) if word not in name]
    whole, compute = cls.num_observations, cls.compute_observations

    def compute_observations(self):
        seen, self.obs_buf = self.obs_buf, torch.zeros(self.num_envs, whole, device=self.device)
        compute(self)
        seen[:] = self.obs_buf[:, kept]
        self.obs_buf = seen

    cls.compute_observations, cls.num_observations = compute_observations, len(kept)
    channels = cls.observation_channels
    cls.observation_channels = tuple(each for each in channels if word not in each.name)
"""


def write_worse(folder: Path) -> None:
    """Copies of the environments, with less to observe, each in a folder of its own."""
    envs = resource_folder("envs")
    for name, (cls, word) in WORSE.items():
        copy = folder / f"{name}_blind"
        shutil.copytree(envs / name, copy, ignore=shutil.ignore_patterns("cards", "__pycache__"))
        for shared in (envs / "_shared").glob("*.py"):
            shutil.copy(shared, copy)
        source = (copy / "env.py").read_text(encoding="utf-8")
        (copy / "env.py").write_text(f"{source}{PATCH}\n\n_without({cls}, {word!r})\n")
        print(copy)


def seconds(chosen: Subject, source: str) -> float:
    """Processor time of ten iterations of eight trainings, after one to warm up."""
    settings = chosen.settings()
    trainer = Trainer(chosen.make, chosen.task, settings, 8, designed=MOST_OBSERVATIONS)
    for job in range(8):
        own = RewardFunction.from_source(source, chosen.loaded.environment_class.all_variables())
        trainer.submit(str(job), own, job)
    trainer.iterate()
    began = time.process_time()
    for _ in range(10):
        trainer.iterate()
    return time.process_time() - began


def speed() -> None:
    """Print and store the shares of both."""
    found = {}
    for task, names in SEEN.items():
        chosen = subject(task)
        source = chosen.loaded.reward_source(chosen.task, "human")
        parts = ", ".join(f"{name}.reshape(len({name}), -1)" for name in names)
        body = f"    return torch.cat([{parts}], dim=-1)\n"
        designed = f"{source}\n\n\ndef design_observation({', '.join(names)}):\n{body}"
        pairs = [(seconds(chosen, designed), seconds(chosen, source)) for _ in range(5)]
        found[task] = statistics.median(one / other for one, other in pairs)
        print(f"{task:26} {found[task]:.2f} times the processor time")
    write_result("observations_speed", {"share": found})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worse", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", nargs="+", default=[], metavar="ARM=FOLDER")
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    start()
    if given.speed:
        speed()
        return
    if given.worse is not None:
        write_worse(given.worse)
        return
    stored = json.loads((RESULTS / "observations.json").read_text())
    lines, human = list[dict[str, Any]](stored["searches"]), dict[str, Any](stored["human"])
    for word in given.runs:
        arm, _, folder = word.partition("=")
        run = open_run(find_run(str(Path(folder))), reading=True)
        task = f"{Path(run.settings.env).name}/{run.description.task}"
        if (score := run_report(run).score("human")) is not None:
            human[task] = {"fitness": score.fitness, "mean": score.mean, "std": score.std}
        elif (card := read_card(Path("envs", run.settings.env), run.description.task)) is not None:
            human[task] = {"fitness": card.human.fitness, "mean": card.human.mean}
            human[task] |= {"std": statistics.stdev(card.human.fitness)}
        if arm != "human" and (line := {**counted(arm, run), "task": task}) not in lines:
            lines.append(line)
    for each in sorted(lines, key=lambda it: (it["task"], it["arm"])):
        first = " ".join(f"{it:.2f}" for it in each["first_scores"][0])
        value = f"{each['mean']:6.2f} ± {each['std']:.2f}"
        print(f"{each['task']:26} {each['arm']:12} {value}  {first}")
    for task, found in human.items():
        print(f"{task:26} {'human':12} {found['mean']:6.2f} ± {found['std']:.2f}")
    write_result("observations", {"searches": lines, "human": human})


if __name__ == "__main__":
    main()

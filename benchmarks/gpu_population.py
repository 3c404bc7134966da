"""Speed gain on a GPU of training 16 members at once over 16 trainings one after the other, for the
environments that are simulated in torch.

    python benchmarks/gpu_population.py [--quick] [TASK …]

Wall time of some iterations after a few that warm up, on one GPU; the two ways take turns, and the
median of each counts. One run of K=1 is measured and counted 16 times. Target: K=16 at least 10
times as fast. Without a GPU nothing is measured.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from _common import Subject, start, subject
from _results import write_result

from eureka_agent.training.trainer import Trainer

MEMBERS = 16
WARM_UP = 3
TARGET = 10.0


def seconds(chosen: Subject, members: int, num_envs: int, iterations: int) -> float:
    """Wall seconds of some iterations on the GPU."""
    settings = chosen.settings(num_envs=num_envs, env_steps=10**12)
    trainer = Trainer(
        lambda rows: chosen.loaded.make(chosen.task, rows, "cuda"),
        chosen.task,
        settings,
        members,
        "cuda",
    )
    for seed in range(members):
        trainer.submit(str(seed), chosen.reward(), seed)
    for _ in range(WARM_UP):
        trainer.iterate()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(iterations):
        trainer.iterate()
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> dict[str, dict[str, float]]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "tasks", nargs="*", default=["cartpole/balance", "quadcopter/hover"], metavar="TASK"
    )
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--quick", action="store_true", help="one round of few iterations")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: no CUDA device")
        return {}
    rounds, iterations = (1, 5) if arguments.quick else (3, 30)
    start()
    figures = {}
    for reference in arguments.tasks:
        chosen = subject(reference)
        together, apart = [], []
        for _ in range(rounds):
            together.append(seconds(chosen, MEMBERS, arguments.num_envs, iterations))
            apart.append(MEMBERS * seconds(chosen, 1, arguments.num_envs, iterations))
        one, many = statistics.median(together), statistics.median(apart)
        steps = MEMBERS * arguments.num_envs * chosen.settings().horizon * iterations
        figures[chosen.name] = {
            "together_s": one,
            "one_by_one_s": many,
            "ratio": many / one,
            "env_steps_per_s": steps / one,
        }
        print(
            f"{chosen.name:18} K=16 takes {one:6.1f} s ({steps / one:,.0f} env steps/s); 16 × K=1"
            f" takes {many / one:.1f} times as long (target: {TARGET:.0f})",
            flush=True,
        )
    if not arguments.quick:
        hardware = {
            "gpu": torch.cuda.get_device_name(),
            "cuda": torch.version.cuda,
            "num_envs": arguments.num_envs,
            "rounds": rounds,
            "iterations": iterations,
        }
        write_result("gpu_population", {**hardware, "tasks": figures})
    return figures


if __name__ == "__main__":
    main()

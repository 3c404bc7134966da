"""Environment steps a second of a training from end to end, and where the time goes: hopper and ant, K=16, N=16, 64×64, one thread.

    python benchmarks/training_speed.py [--iterations N] [--members K] [TASK …]

Targets on one core: hopper 30,000 and ant 14,000 steps/s. A TASK is `env` or `env/task`.
"""

from __future__ import annotations

import argparse
import time

from _common import filled_trainer, start, subject, write_result

TARGETS = {"hopper/run": 30_000, "ant/run": 14_000}
WARM_UP = 3


def measure(reference: str, members: int, iterations: int) -> tuple[str, dict[str, float | dict[str, float]]]:
    """Steps/s by the wall clock and by the processor's, and the parts' shares of the wall time."""
    chosen = subject(reference)
    settings = chosen.settings(num_envs=16, hidden_sizes=(64, 64), env_steps=10**12)
    trainer = filled_trainer(chosen, settings, range(members))
    for _ in range(WARM_UP):
        trainer.iterate()
    before, began, processor = dict(trainer.timers), time.perf_counter(), time.process_time()
    for _ in range(iterations):
        trainer.iterate()
    seconds, processor_seconds = time.perf_counter() - began, time.process_time() - processor
    steps = iterations * members * settings.horizon * settings.num_envs
    shares = {part: (trainer.timers[part] - before[part]) / seconds for part in before}
    return chosen.name, {
        "steps_per_second": steps / seconds,
        "steps_per_processor_second": steps / processor_seconds,
        "shares": shares,
    }


def main() -> dict[str, dict[str, float | dict[str, float]]]:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", default=["hopper", "ant"], metavar="TASK")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--members", type=int, default=16)
    arguments = parser.parse_args()
    start()
    figures = dict(measure(reference, arguments.members, arguments.iterations) for reference in arguments.tasks)
    for name, found in figures.items():
        shares = found["shares"]
        assert isinstance(shares, dict)
        parts = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
        target = f"   (target: {TARGETS[name]:,})" if name in TARGETS else ""
        print(f"{name:18} {found['steps_per_second']:9,.0f} steps/s{target}")
        print(f"{'':18} {found['steps_per_processor_second']:9,.0f} steps per second of processor time; {parts}")
    write_result("training_speed", {"members": arguments.members, "tasks": figures})
    return figures


if __name__ == "__main__":
    main()

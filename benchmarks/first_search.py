"""From a clone to a finished report: set-up and a default search, timed apart; and how long `eureka
--help` takes.

    python benchmarks/first_search.py

Clones this repository into a temporary folder, so what is not committed does not count. pip's cache
is used as it is. Targets: set-up and search under 3 minutes on 2 CPU cores, the search under 60 s,
help under 0.3 s.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
HELP_RUNS = 11


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    """Wall seconds and standard output of a command that succeeds."""
    began = time.monotonic()
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return time.monotonic() - began, result.stdout


def main() -> dict[str, float]:
    """Run and print; returns the figures."""
    with tempfile.TemporaryDirectory() as temporary:
        clone = Path(temporary) / "clone"
        subprocess.run(["git", "clone", "--quiet", str(REPOSITORY), str(clone)], check=True)
        setup, _ = timed(["./eureka", "--version"], clone)
        search, output = timed(
            ["./eureka", "search", "balance the pole", "--env", "cartpole", "--format", "json"],
            clone,
        )
        helps = [
            timed([str(clone / ".venv/bin/eureka"), "--help"], clone)[0] for _ in range(HELP_RUNS)
        ]
    found = json.loads(output)
    figures = {
        "setup_s": setup,
        "search_s": search,
        "total_s": setup + search,
        "help_s": statistics.median(helps),
    }
    print(f"cores                {len(os.sched_getaffinity(0))}")
    print(f"set-up               {setup:6.1f} s")
    print(f"search               {search:6.1f} s   (target: under 60)")
    print(f"clone to report      {setup + search:6.1f} s   (target: under 180)")
    print(f"eureka --help        {figures['help_s']:6.3f} s   (target: under 0.3)")
    print(
        f"best {found['best']['mean']:.3g}, human {found['human']['mean']:.3g}, sparse"
        f" {found['sparse']['mean']:.3g}"
    )
    return figures


if __name__ == "__main__":
    main()

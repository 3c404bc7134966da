"""Results on disk."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


def commit() -> str:
    """The checkout's commit, with a `+` where its files differ from it; empty where git does not
    tell."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--exclude=*", "--dirty=+"],
            cwd=RESULTS.parent,
            capture_output=True,
            text=True,
        )
    except OSError:
        return ""
    return described.stdout.strip()


def write_result(name: str, figures: dict[str, Any]) -> None:
    """Store figures under `results/`, with the class of machine, the commit and the versions that
    gave them."""
    import torch  # not before: it would count in a driver whose memory was measured

    RESULTS.mkdir(exist_ok=True)
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "cores": len(os.sched_getaffinity(0)),
        "machine": platform.machine(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        **figures,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=2) + "\n")
    print(f"written to {path.relative_to(RESULTS.parent.parent)}")

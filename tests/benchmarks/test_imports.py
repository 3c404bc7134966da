"""Benchmarks run seldom: what they import must not go away unseen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
IMPORT_ALL = """
import importlib, sys, traceback
failed = 0
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException:
        failed += 1
        print(name, traceback.format_exc(limit=-1))
sys.exit(failed)
"""


def test_every_benchmark_finds_what_it_imports() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__main__")
    assert len(names) > 20
    program = [sys.executable, "-c", IMPORT_ALL, *names]
    run = subprocess.run(program, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr

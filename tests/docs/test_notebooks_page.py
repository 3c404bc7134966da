"""The examples of docs/notebooks.md run as they stand, in a process whose event loop runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8"), re.DOTALL
)
IN_A_LOOP = """import asyncio, sys
async def cell():
    exec(sys.stdin.read(), {})
asyncio.run(cell())
"""


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    assert len(BLOCKS) == 2
    result = subprocess.run(
        [sys.executable, "-c", IN_A_LOOP],
        input="\n".join(BLOCKS),
        cwd=tmp_path,
        env={**os.environ, "EUREKA_RUNS": str(tmp_path / "runs")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "1-01 trained" in result.stdout
    assert len(list((tmp_path / "runs").glob("*/report.md"))) == 2  # the search and the training

"""Each confined process is one of its own: what is confined stays so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from eureka_agent.boundary import landlock

pytestmark = pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")
CONFINED = """
import os, signal, subprocess, sys
from pathlib import Path
from eureka_agent.boundary import landlock
inside, outside = Path(sys.argv[1]), Path(sys.argv[2])
landlock.write_only_in([inside, Path("/dev")])
"""


def confined(tmp_path: Path, source: str) -> str:
    """Output of a process that may write to `inside` alone, or the last line of its error."""
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "old").write_text("old")
    program = [sys.executable, "-c", CONFINED + source, tmp_path / "inside", tmp_path / "outside"]
    result = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    return result.stdout or result.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize(
    "write",
    [
        '(outside / "new").write_text("")',
        '(outside / "old").write_text("")',
        '(outside / "old").unlink()',
        '(outside / "folder").mkdir()',
        'os.truncate(outside / "old", 0)',
        '(inside / "old").rename(outside / "moved")',
        '(outside / "old").rename(inside / "moved")',
        '(inside / "way").symlink_to(outside); (inside / "way" / "new").write_text("")',
        'os.link(outside / "old", inside / "linked")',
    ],
)
def test_nothing_is_written_outside(tmp_path: Path, write: str) -> None:
    assert "PermissionError" in confined(tmp_path, write) or "OSError" in confined(tmp_path, write)
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["old"]
    assert (tmp_path / "outside" / "old").read_text() == "old"


def test_writing_inside_and_reading_elsewhere_go_on(tmp_path: Path) -> None:
    work = """
(inside / "new").write_text((outside / "old").read_text())
(inside / "new").rename(inside / "moved")
Path("/dev/null").write_text("nothing")
print((inside / "moved").read_text(), sorted(os.listdir(outside)))
"""
    assert confined(tmp_path, work) == "old ['old']\n"


def test_children_are_confined_too(tmp_path: Path) -> None:
    work = """
touch = subprocess.run(["touch", outside / "new"], capture_output=True, text=True)
print(touch.returncode, touch.stderr)
"""
    assert "1 touch: cannot touch" in confined(tmp_path, work)
    assert not (tmp_path / "outside" / "new").exists()


@pytest.mark.skipif(landlock.version() < 6, reason="the kernel's Landlock knows no signals")
def test_other_processes_get_no_signal_and_its_children_do(tmp_path: Path) -> None:
    work = """
child = subprocess.Popen(["sleep", "60"])
child.kill()
print(child.wait())
try:
    os.kill(os.getppid(), 0)
except PermissionError:
    print("refused")
"""
    assert confined(tmp_path, work) == "-9\nrefused\n"

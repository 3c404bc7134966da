"""Ctrl-C at the very start of the program, where nothing but imports happens."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = (
    "import sys\nfrom eureka_agent.cli.main import main\nif __name__ == '__main__':\n   "
    " sys.exit(main())\n"
)
"""Console script as pip writes it."""


@pytest.mark.parametrize("way", ["module", "script"])
@pytest.mark.parametrize("command", ["envs", "search"])
def test_ctrl_c_while_the_program_imports_its_parts_ends_it_without_a_word(
    tmp_path: Path, way: str, command: str
) -> None:
    script = tmp_path / "eureka"
    script.write_text(SCRIPT)
    program = ["-m", "eureka_agent.cli.main"] if way == "module" else [str(script)]
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", *program, command],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    imported = []
    for line in process.stderr:  # one a module, written when it has been imported
        imported.append(line)
        if (
            line.split("|")[-1].strip() == "click._compat"
        ):  # the first package of others that the program imports
            process.send_signal(signal.SIGINT)
            break
    _, rest = process.communicate(timeout=60)
    said = [
        line
        for line in [*imported, *rest.splitlines(keepends=True)]
        if not line.startswith("import time:")
    ]
    assert (process.returncode, said) == (130, [])

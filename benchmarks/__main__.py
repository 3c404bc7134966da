"""Benchmarks, each in a process of its own, and a table of the training engine's figures.

python -m benchmarks            all but the long studies, about an hour on two idle cores
python -m benchmarks NAME …     some of them
python -m benchmarks --quick    a moment of each, to see that they run; stores nothing
python -m benchmarks --list     their names and what they measure
python -m benchmarks --table    the table of the stored results
"""

from __future__ import annotations

import ast
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.table import render, rows

FOLDER = Path(__file__).resolve().parent
STUDIES = (
    "best_and_worst",
    "certainty",
    "choices",
    "designer_tools",
    "judge_agreement",
    "labels",
    "learning_parity",
    "mutants",
    "observations",
    "offline_designer",
    "reward_distance",
    "reward_kinds",
    "reward_table",
    "roles",
    "room_above_human",
    "search_efficiency",
    "strategies",
    "subgoals",
    "surrogate",
    "term_order",
    "wishes",
)
"""Studies behind earlier decisions (half an hour to two hours each), or of existing runs. They run
only by name."""
QUICK = "--quick"


def scripts() -> dict[str, Path]:
    """Benchmarks by name: every module here that has a `main`."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        functions = [
            node.name
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.FunctionDef)
        ]
        if "main" in functions and not path.name.startswith("_"):
            found[path.stem] = path
    return found


def show_list() -> None:
    """Print every benchmark with the first paragraph of its docstring."""
    for name, path in scripts().items():
        doc = ast.get_docstring(ast.parse(path.read_text())) or ""
        study = "  (only by name)" if name in STUDIES else ""
        print(f"{name:24} {' '.join(doc.partition(chr(10) * 2)[0].split())}{study}")


def main() -> int:
    """Run the benchmarks asked for. Returns the number that failed."""
    known, asked, began = scripts(), sys.argv[1:], time.time()
    if asked in (["--list"], ["--table"]):
        show_list() if asked == ["--list"] else print(render(rows()))
        return 0
    names = [name for name in asked if name != QUICK]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"error: no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    quick = QUICK in asked
    failed = []
    for name in names or [name for name in known if name not in STUDIES]:
        if quick and f'"{QUICK}"' not in known[name].read_text():
            print(f"\n== {name} has no {QUICK} ==")
            continue
        print(f"\n== {name} ==", flush=True)
        command = [sys.executable, str(known[name]), *([QUICK] if quick else [])]
        if subprocess.run(command, cwd=FOLDER.parent).returncode != 0:
            failed.append(name)
    if not quick:
        print(f"\n{render(rows(began))}")
    print(
        f"\n{(time.time() - began) / 60.0:.0f} minutes"
        + (f"; failed: {', '.join(failed)}" if failed else "")
    )
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())

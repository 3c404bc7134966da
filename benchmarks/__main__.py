"""`make bench`: every benchmark, one after the other, each in a process of its own.

python -m benchmarks            all of them
python -m benchmarks --list     their names and what they measure
python -m benchmarks NAME …     some of them
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def scripts() -> dict[str, Path]:
    """Benchmarks by name: every module here that has a `main`."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        functions = [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
        if "main" in functions and not path.name.startswith("_"):
            found[path.stem] = path
    return found


def main() -> int:
    """Run what was asked for; the number of benchmarks that failed."""
    known, asked = scripts(), sys.argv[1:]
    if asked == ["--list"]:
        for name, path in known.items():
            doc = ast.get_docstring(ast.parse(path.read_text())) or ""
            print(f"{name:24} {doc.splitlines()[0] if doc else ''}")
        return 0
    unknown = [name for name in asked if name not in known]
    if unknown:
        print(f"error: no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    failed = 0
    for name in asked or known:
        print(f"\n== {name} ==", flush=True)
        failed += subprocess.run([sys.executable, str(known[name])], cwd=FOLDER.parent).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())

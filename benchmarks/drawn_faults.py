"""A random draw of small faults over the whole package: the yardstick of a change of the tests.

    python benchmarks/drawn_faults.py [--each N] [--seed N]

Writes `faults/drawn/drawn.toml`, which `mutants.py --drawn` tries. As many are drawn of each kind:
another comparison, another sign, another constant, a call that is dropped, the other branch, `and`
for `or`. A fault's tests are those from which the fewest imports lead to its file.

No fault is drawn in what keeps generated code in: tests really attack the machine that they run on.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _faults import FAULTS

ROOT = FAULTS.parent.parent
PACKAGE = "eureka_agent"
WALLS = ("boundary/", "sandbox/", "worker/confinement", "worker/limits", "worker/nursery")
"""Beginnings of the paths in the package that are left out."""
ATTACKS = "tests/adversarial"
EACH, SEED = 50, 0
MOST_TESTS = 12
"""Files of tests that are tried at first, and as many after them."""
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.NotIn: (" not in ", " in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
}
_SIGNS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
}


@dataclass(frozen=True)
class Change:
    """Another text between two places of a source."""

    kind: str
    begin: int
    end: int
    text: str


def changes(source: str) -> Iterator[Change]:
    """All changes of a module's source, annotations and texts for people left out."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    data = source.encode()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def between(left: ast.expr, right: ast.expr, old: str, new: str, kind: str) -> Iterator[Change]:
        begin = at(left.end_lineno or 0, left.end_col_offset or 0)
        end = at(right.lineno, right.col_offset)
        place = data[begin:end].decode().find(old)
        if place >= 0:
            yield Change(kind, begin + place, begin + place + len(old), new)

    def whole(node: ast.expr | ast.stmt, text: str, kind: str) -> Change:
        begin = at(node.lineno, node.col_offset)
        return Change(kind, begin, at(node.end_lineno or 0, node.end_col_offset or 0), text)

    for node in _evaluated(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield from between(left, right, *_COMPARISONS[type(operator)], "comparison")
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _SIGNS:
                yield from between(left, right, *_SIGNS[type(operator)], "sign")
            case ast.BoolOp(op=ast.And(), values=[left, right, *_]):
                yield from between(left, right, "and", "or", "boolean")
            case ast.BoolOp(op=ast.Or(), values=[left, right, *_]):
                yield from between(left, right, "or", "and", "boolean")
            case ast.Constant(value=bool(value)):
                yield whole(node, str(not value), "constant")
            case ast.Constant(value=int(value)):
                yield whole(node, str(value + 1), "constant")
            case ast.Constant(value=float(value)):
                yield whole(node, repr(2.0 * value + 1.0), "constant")
            case ast.Expr(value=ast.Call()):
                yield whole(node, "pass", "call")
            case ast.If(test=test) | ast.IfExp(test=test):
                text = data[slice(*_span(test, starts))].decode()
                yield whole(test, f"not ({text})", "branch")


def _span(node: ast.expr, starts: list[int]) -> tuple[int, int]:
    end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
    return starts[node.lineno - 1] + node.col_offset, end


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that are evaluated, annotations left out."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_for_types(child):
                yield child
                yield from _evaluated(child)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def planted(source: str, change: Change) -> tuple[str, str] | None:
    """Whole lines around a change that stand once in the source, and those in their place; None
    where the lines of the whole file are too few."""
    data = source.encode()
    begin = data.rfind(b"\n", 0, change.begin) + 1
    end = data.find(b"\n", change.end)
    while begin >= 0 and end >= 0:
        old = data[begin:end]
        if data.count(old) == 1:
            new = data[begin : change.begin] + change.text.encode() + data[change.end : end]
            return old.decode(), new.decode()
        begin = data.rfind(b"\n", 0, max(0, begin - 1)) + 1 if begin else -1
    return None


def imported_by(root: Path) -> dict[str, set[str]]:
    """By file, the files of package and tests that import it."""
    tests = (path for path in (root / "tests").rglob("*.py") if "corpus" not in path.parts)
    files = [*(root / PACKAGE).rglob("*.py"), *tests]
    helpers = {path.stem: path for path in files if "tests" in path.parts}
    found: dict[str, set[str]] = defaultdict(set)
    for path in files:
        for name in _imports(ast.parse(path.read_text())):
            module = root / Path(*name.split("."))
            for target in (module.with_suffix(".py"), module / "__init__.py"):
                if name.startswith(PACKAGE) and target.is_file():
                    found[str(target.relative_to(root))].add(str(path.relative_to(root)))
            if name in helpers:
                found[str(helpers[name].relative_to(root))].add(str(path.relative_to(root)))
    return found


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{each.name}" for each in names)


def nearest_tests(file: str, importers: dict[str, set[str]], root: Path) -> list[str]:
    """Files of tests from which imports lead to a file of the package: by the number of imports on
    the way, then of the file's own part, then the shortest ones. Commands are imported by their
    names."""
    part = Path("tests", *Path(file).parts[1:2])
    own = {str(each.relative_to(root)) for each in (root / part).rglob("test_*.py")}
    distances, edge = {file: 0}, [file]
    for distance in range(1, len(importers)):
        edge = sorted({each for known in edge for each in importers[known]} - distances.keys())
        distances |= dict.fromkeys(edge, distance)
    last = max(distances.values()) + 1
    tests = {
        each: known for each, known in distances.items() if Path(each).name.startswith("test_")
    }
    tests = {**dict.fromkeys(own, last), **tests}
    return sorted(
        (each for each in tests if not each.startswith(ATTACKS)),
        key=lambda test: (tests[test], test not in own, (root / test).stat().st_size),
    )


def drawn(root: Path, each: int, seed: int) -> Iterator[tuple[str, dict[str, object]]]:
    """Faults by name."""
    by_kind: dict[str, list[tuple[str, Change]]] = defaultdict(list)
    for path in sorted((root / PACKAGE).rglob("*.py")):
        if not str(path.relative_to(root / PACKAGE)).startswith(WALLS):
            for change in changes(path.read_text()):
                by_kind[change.kind].append((str(path.relative_to(root)), change))
    importers = imported_by(root)
    for kind, sites in sorted(by_kind.items()):
        chosen = random.Random(f"{seed}-{kind}").sample(sites, len(sites))
        taken = 0
        for file, change in chosen:
            texts = planted((root / file).read_text(), change)
            if texts is None or taken == each:
                continue
            taken += 1
            tests = nearest_tests(file, importers, root)
            yield (
                f"{kind}_{taken:02d}",
                {
                    "what": f"{kind} in {file}",
                    "file": file,
                    "old": texts[0],
                    "new": texts[1],
                    "tests": tests[:MOST_TESTS],
                    "wider": tests[MOST_TESTS : 2 * MOST_TESTS],
                },
            )


def main() -> None:
    """Draw, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=EACH, help="faults of each kind")
    parser.add_argument("--seed", type=int, default=SEED)
    asked = parser.parse_args()
    tables = []
    for name, fault in drawn(ROOT, asked.each, asked.seed):
        rows = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in fault.items()]
        tables.append("\n".join([f"[{name}]", *rows]))
    path = FAULTS / "drawn/drawn.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(tables) + "\n")
    print(f"{len(tables)} faults written to {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

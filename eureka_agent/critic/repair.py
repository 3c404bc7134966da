"""Repairs of defects with one sure repair, with a note for each. Lines stay in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from eureka_agent import syntax
from eureka_agent.critic.allow_list import imports, names_used
from eureka_agent.critic.contract import FUNCTION_NAME
from eureka_agent.critic.parse import finding
from eureka_agent.records import Finding, TaskDescription
from eureka_agent.reward_names import is_helper_module

_NUMBERS = {"pi": "math.pi", "e": "math.e", "inf": "math.inf", "Inf": "math.inf", "nan": "math.nan"}
_FUNCTIONS = re.compile("acos|asin|atan2?|cosh?|erf|exp|expm1|log(10|1p|2)?|pow|sinh?|sqrt|tanh?")


@dataclass(frozen=True)
class _Edit:
    """Replacement of a node's text, in one line or as a whole statement."""

    node: ast.expr | ast.stmt
    text: str
    note: str


def repair(
    tree: ast.Module, source: str, description: TaskDescription
) -> tuple[str, list[Finding]]:
    """The source with all sure repairs, and a note for each."""
    constants = frozenset(constant.name for constant in description.constants)
    edits = [*_name_of_the_function(tree), *_foreign(tree), *_numbers(tree, constants)]
    edits += _unused(tree, edits)
    if not edits:
        return source, []
    gone = {
        part for edit in edits if isinstance(edit.node, ast.stmt) for part in ast.walk(edit.node)
    }
    edits = [edit for edit in edits if isinstance(edit.node, ast.stmt) or edit.node not in gone]
    mended = replaced(source, [(edit.node, edit.text) for edit in edits])
    # a statement that fills a top-level line needs no `pass`
    lines = mended.split("\n")
    for edit in edits:
        if edit.text == lines[edit.node.lineno - 1].rstrip() == "pass":
            lines[edit.node.lineno - 1] = ""
    notes = [finding("M401", edit.note, edit.node, severity="note") for edit in edits]
    return "\n".join(lines), sorted(notes, key=lambda note: note.line or 0)


def replaced(source: str, edits: Iterable[tuple[ast.expr | ast.stmt, str]]) -> str:
    """The source with texts in place of some of its nodes. Lines stay in place."""
    lines = source.encode().split(b"\n")  # columns of a syntax tree count bytes
    for node, text in sorted(edits, key=lambda each: _place(each[0]), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        end = lines[last][node.end_col_offset :]
        changed = lines[first][: node.col_offset] + text.encode() + end
        lines[first : last + 1] = [changed, *([b""] * (last - first))]
    return b"\n".join(lines).decode()


def _place(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _name_of_the_function(tree: ast.Module) -> Iterator[_Edit]:
    """Rename the only function that returns a reward and is not called to `compute_reward`."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    called = {node.id for node in syntax.nodes(tree) if isinstance(node, ast.Name)}
    everywhere = (node for node in syntax.nodes(tree) if isinstance(node, ast.FunctionDef))
    if any(node.name == FUNCTION_NAME for node in everywhere):
        return
    found = [
        node
        for node in functions
        if node.name not in called and any(map(_is_reward, ast.walk(node)))
    ]
    if len(found) == 1:
        name = ast.Name(
            found[0].name, lineno=found[0].lineno, col_offset=found[0].col_offset + len("def ")
        )
        name.end_lineno, name.end_col_offset = (
            name.lineno,
            name.col_offset + len(found[0].name.encode()),
        )
        yield _Edit(
            name,
            FUNCTION_NAME,
            f"{found[0].name!r}, the only function that returns a reward, is taken as"
            f" {FUNCTION_NAME!r}",
        )


def _is_reward(node: ast.AST) -> bool:
    """True for a `return` of two values, of which the second may be a dictionary."""
    match node:
        case ast.Return(
            value=ast.Tuple(elts=[_, ast.Dict() | ast.DictComp() | ast.Name() | ast.Call()])
        ):
            return True
    return False


def _foreign(tree: ast.Module) -> Iterator[_Edit]:
    """Repair imports of predefined names, numpy's constants, names of other devices, and prints."""
    arrays = _arrays(tree)
    chosen = {
        part
        for node in syntax.nodes(tree)
        if isinstance(node, ast.IfExp)
        for part in ast.walk(node)
    }
    for node in syntax.nodes(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=constant) if (
                name in arrays and constant in _NUMBERS
            ):
                yield _Edit(
                    node, _NUMBERS[constant], f"`{name}.{constant}` is `{_NUMBERS[constant]}`"
                )
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                yield _Edit(
                    node,
                    "pass",
                    "a `print` is left out: return what you want to see as a component",
                )
            case ast.ImportFrom(module=str(module)) if is_helper_module(module):
                yield _Edit(
                    node, "pass", f"`{module}` is not imported: its functions are there without it"
                )
            case ast.IfExp(test=test) if ast.unparse(test) == "torch.cuda.is_available()":
                yield _Edit(node, "'cpu'", "rewards are calculated on the CPU")
            case ast.Constant(value="cuda" | "cuda:0") if node not in chosen:
                yield _Edit(node, "'cpu'", "rewards are calculated on the CPU")


def standalone(source: str) -> str:
    """A repaired source as a file, with an import of `math` if it needs one."""
    source = source.lstrip("\n")
    tree = syntax.parsed(source)
    used = any(isinstance(node, ast.Name) and node.id == "math" for node in syntax.nodes(tree))
    if not used or _imports_math(tree):
        return source
    first = tree.body[ast.get_docstring(tree) is not None]
    blank = "" if isinstance(first, ast.Import | ast.ImportFrom) else "\n\n"
    lines = source.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"import math\n{blank}")
    return "".join(lines)


def _imports_math(tree: ast.Module) -> bool:
    return ("math", "math") in imports(tree)


def _unused(tree: ast.Module, edits: Sequence[_Edit]) -> Iterator[_Edit]:
    """Remove unused imports of numpy, or import `math` there if the repairs need it."""
    mended = {part for edit in edits for part in ast.walk(edit.node)}
    arrays = _arrays(tree)
    needs_math = any(edit.text.startswith("math") for edit in edits) and not _imports_math(tree)
    if not any(
        isinstance(node, ast.Name) and node.id in arrays and node not in mended
        for node in syntax.nodes(tree)
    ):
        for node in syntax.nodes(tree):
            if isinstance(node, ast.Import) and all(
                (alias.asname or alias.name) in arrays for alias in node.names
            ):
                text, note = "pass", "left out: nothing of it is used"
                if needs_math and node in tree.body:
                    needs_math = False
                    text, note = "import math", "`import math`: nothing else is used"
                yield _Edit(node, text, f"`{ast.unparse(node)}` is {note}")


def _arrays(tree: ast.Module) -> set[str]:
    arrays = {name for name, path in imports(tree) if path in ("numpy", "jax.numpy")}
    return arrays | {"np", "numpy"}


def _numbers(tree: ast.Module, constants: frozenset[str]) -> Iterator[_Edit]:
    """Replace functions of torch by those of math where the argument is a number."""
    top = _number_names(tree, frozenset(), constants)
    known_at: dict[ast.Call, frozenset[str]] = {}
    for scope in (
        tree,
        *(node for node in syntax.nodes(tree) if isinstance(node, ast.FunctionDef)),
    ):
        known = top if scope is tree else _number_names(scope, top, constants)
        # the innermost function comes last
        known_at |= {node: known for node in syntax.nodes(scope) if isinstance(node, ast.Call)}
    for call, known in known_at.items():
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch" | "np") as module, attr=name),
                args=[argument, *_],
            ):
                if _FUNCTIONS.fullmatch(name) and _is_number(argument, known):
                    yield _Edit(
                        module, "math", f"`{ast.unparse(call)}` of a number is written with math"
                    )


def _number_names(
    scope: ast.AST, around: frozenset[str], constants: frozenset[str]
) -> frozenset[str]:
    """Names of numbers in a function or at the top level: annotated, or assigned once."""
    numbers = set(around)
    if isinstance(scope, ast.FunctionDef):
        arguments = {
            each.arg: each.annotation for each in ast.walk(scope.args) if isinstance(each, ast.arg)
        }
        numbers -= arguments.keys()
        numbers |= {
            name
            for name, said in arguments.items()
            if name in constants or (isinstance(said, ast.Name) and said.id in ("float", "int"))
        }
    stored = names_used(scope, ast.Store)
    for node in syntax.nodes(scope):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if stored.count(name) == 1 and _is_number(value, numbers):
                    numbers.add(name)
    return frozenset(numbers - {name for name in stored if stored.count(name) > 1})


def _is_number(node: ast.expr, known: Collection[str]) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case ast.Name(id=name):
            return name in known
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _is_number(operand, known)
        case ast.BinOp(left=left, right=right):
            return _is_number(left, known) and _is_number(right, known)
        case (
            ast.Attribute(value=ast.Name(id="math" | "np"))
            | ast.Call(
                func=ast.Attribute(value=ast.Name(id="math")) | ast.Name(id="float" | "int" | "len")
            )
        ):
            return True
    return False

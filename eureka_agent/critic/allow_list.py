"""The critic's second step: the syntax, functions and attributes that a reward may use. It gives
good messages; the protection is the wall. It is a positive list: what `vocabulary` does not name is
refused, with the nearest allowed name as a hint."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Collection, Iterable, Iterator

from eureka_agent import syntax
from eureka_agent.critic import vocabulary
from eureka_agent.critic.parse import finding
from eureka_agent.critic.vocabulary import PURE, kept_addresses
from eureka_agent.records import Finding
from eureka_agent.reward_names import ALL_BUILTINS, BUILTINS, MODULES_THERE

_SYNTAX = frozenset(
    """Module FunctionDef Lambda arguments arg Return Import ImportFrom alias Assign AugAssign
    AnnAssign NamedExpr For If IfExp Expr Pass Break Continue Assert Raise With BoolOp BinOp
    UnaryOp Compare Call keyword Dict Set List Tuple ListComp SetComp DictComp GeneratorExp
    comprehension Slice JoinedStr FormattedValue Constant Attribute Subscript Starred Name And Or
    Not Invert UAdd USub Add Sub Mult Div FloorDiv Mod Pow MatMult BitAnd BitOr BitXor LShift
    RShift Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn Load Store Del""".split()  # noqa: SIM905
)
_CLASSES = frozenset(("torch.Tensor", "typing.Union"))
"""The class whose constructor may leave memory as it was, and what gives it back."""
_SETS = frozenset(("set", "frozenset"))
_VIEWS = frozenset(("items", "keys"))
_CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_RETURN_VALUES = ("A206", "return the values")
_AVOID_ERRORS = ("A206", "avoid the error in place of catching it, with `torch.where` or `clamp`")
_REFUSED_SYNTAX: dict[type[ast.AST], tuple[str, str]] = {
    ast.While: ("A208", "use tensor operations, or `for … in range(n)` with a fixed n"),
    ast.Global: ("A205", PURE),
    ast.Nonlocal: ("A205", PURE),
    ast.ClassDef: ("A206", "use plain functions and named constants"),
    ast.AsyncFunctionDef: ("A206", "use a plain function"),
    ast.Match: ("A206", "use `if`, or `torch.where` for each row"),
    **dict.fromkeys((ast.Try, ast.TryStar), _AVOID_ERRORS),
    **dict.fromkeys((ast.Yield, ast.YieldFrom, ast.Await), _RETURN_VALUES),
}


def check_allow_list(tree: ast.Module) -> list[Finding]:
    """Findings on everything but plain, pure arithmetic on tensors, by line."""
    walk = _Walk(tree)
    walk.check(tree, None)
    walk.check_texts(tree)
    return sorted(walk.findings, key=lambda item: (item.line or 0, item.column or 0))


class _Walk:
    """Checks executed code. Annotations are left out, since the trainer never evaluates them."""

    def __init__(self, tree: ast.Module) -> None:
        self.findings: list[Finding] = []
        self._modules = {name: name for name in MODULES_THERE}  # there without an import
        for name, path in imports(tree):
            if path in vocabulary.MODULES:
                self._modules.setdefault(name, path)
        own = names_bound(tree, imported=False)
        self._own = own
        self._members = dict(imports(tree))
        self._sets = _SETS - own
        self._classes = {"Tensor", "Union"} | {n for n, path in imports(tree) if path in _CLASSES}
        self._harmless = {id(part) for node in syntax.nodes(tree) for part in _harmless(node, own)}

    def check(self, node: ast.AST, local: frozenset[str] | None) -> None:
        """Check a node and all below it. `local` has the names of the functions around it, or is
        None outside of functions."""
        if type(node).__name__ not in _SYNTAX:
            code, hint = _REFUSED_SYNTAX.get(type(node), ("A206", PURE))
            return self._refuse(code, f"`{ast.unparse(node).strip().splitlines()[0]}`", node, hint)
        if id(node) not in self._harmless:
            self._check_for_leftovers(node)
        match node:
            case ast.Import():
                for alias in node.names:
                    if self._check_module(alias.name, node):
                        self._check_binding(*_import_of(alias), node)
            case ast.ImportFrom():
                self._check_import_from(node)
            case ast.FunctionDef() | ast.Lambda():
                return self._check_function(node, local)
            case ast.AnnAssign():
                return self._check_all((node.target, node.value), local)
            case ast.With(items=items):
                what = ", ".join(map(ast.unparse, items))
                if what != "torch.no_grad()":
                    hint = "leave it out: rewards are called without gradients as it is"
                    self._refuse("A206", f"`with {what}`", node, hint)
                return self._check_all(node.body, local)
            case ast.Subscript() if not isinstance(node.ctx, ast.Load):
                self._check_change(node, local)
            case ast.Call(func=ast.Attribute(attr=method) as called) if changes(method):
                self._check_change(called, local)
            case ast.keyword(arg="out" | "inplace" as name):
                self._refuse("A205", f"`{name}=`, which writes into a tensor,", node.value, PURE)
            case ast.keyword(arg=None):
                hint = "write the arguments by name"
                what = f"`**{ast.unparse(node.value)}`, which may hold `out=`,"
                self._refuse("A205", what, node.value, hint)
            case ast.Name():
                self._check_name(node)
            case ast.Attribute():
                return self._check_attribute(node, local)
        return self._check_all(ast.iter_child_nodes(node), local)

    def check_texts(self, tree: ast.Module) -> None:
        """Refuse values whose text differs from process to process, where values become text."""
        for node in kept_addresses(tree, self._own, self._path_of_member):
            hint = (
                "call it where it is used: where a reward makes text, it could hold its address,"
                " which differs from process to process"
            )
            self._refuse("A206", f"`{ast.unparse(node)}` as a value beside text", node, hint)

    def _check_all(self, nodes: Iterable[ast.AST | None], local: frozenset[str] | None) -> None:
        for node in nodes:
            if node is not None:
                self.check(node, local)

    def _check_for_leftovers(self, node: ast.AST) -> None:
        """Refuse memory that holds anything, and an order that differs from process to process."""
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""
        if isinstance(node, (ast.Set, ast.SetComp)) or name in self._sets:
            hint = "use a list or a tuple: the order of a set differs from process to process"
            self._refuse("A206", f"the set `{ast.unparse(node)}`", node, hint)
        elif isinstance(node, ast.Attribute) and node.attr in _VIEWS:
            hint = "loop over it, or make a list of it: a set of its parts has no fixed order"
            self._refuse("A206", f"`{ast.unparse(node)}()` as a value", node, hint)
        elif name in self._classes or self._path(node) in _CLASSES:
            hint = "use `torch.tensor` or `torch.zeros`: its memory may hold anything"
            self._refuse("A204", f"`{ast.unparse(node)}` as a value", node, hint)

    # ── functions and what they may change ────────────────────────────────────────────────────────

    def _check_function(
        self, node: ast.FunctionDef | ast.Lambda, around: frozenset[str] | None
    ) -> None:
        arguments = {each.arg: each for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        if isinstance(node, ast.FunctionDef):
            self._check_binding(node.name, "", node)
            for decorator in node.decorator_list:
                if self._path(decorator) != "torch.jit.script":
                    what = f"the decorator `@{ast.unparse(decorator)}`"
                    self._refuse("A207", what, decorator, "only `@torch.jit.script` is accepted")
        for name, argument in arguments.items():
            self._check_binding(name, "", argument)
        for default in filter(None, (*node.args.defaults, *node.args.kw_defaults)):
            if any(isinstance(part, _CONTAINERS) for part in ast.walk(default)):
                what = f"the default value `{ast.unparse(default)}`, which outlives the call,"
                self._refuse("A205", what, default, "make it in the function")
            self.check(default, around)
        body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
        bound = {name for part in body for name in names_bound(part)}
        self._check_all(body, (around or frozenset()) | arguments.keys() | bound)

    def _check_change(self, target: ast.expr, local: frozenset[str] | None) -> None:
        """Refuse a change of an object from outside the function: it would outlive the call."""
        while isinstance(target, (ast.Subscript, ast.Attribute)):
            target = target.value
        if (
            local is not None
            and isinstance(target, ast.Name)
            and target.id not in local | self._modules.keys()
        ):
            hint = "make it in the function: a reward keeps nothing from one call to the next"
            self._refuse("A205", f"changing {target.id!r}, which outlives the call,", target, hint)

    # ── names, modules and attributes ─────────────────────────────────────────────────────────────

    def _check_name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._check_binding(node.id, "", node)
        elif node.id in self._modules:  # a path's start is checked in _check_attribute
            hint = "call its functions by their full names"
            self._refuse("A210", f"the module {node.id!r} as a value", node, hint)
        elif node.id.startswith("__"):
            self._refuse("A203", f"the name {node.id!r}", node, "use plain names only")
        elif node.id in ALL_BUILTINS - BUILTINS:
            hint = _hint(node.id, BUILTINS)
            self._refuse("A202", f"the built-in {node.id!r}", node, hint)

    def _check_binding(self, name: str, path: str, node: ast.AST) -> None:
        """Refuse a name that is already a module or a built-in. `path` is a module's own."""
        if name.startswith("__"):
            self._refuse("A203", f"the name {name!r}", node, "use plain names only")
        elif name in ALL_BUILTINS - BUILTINS:
            self._refuse("A202", f"the built-in {name!r} as a name", node, "choose another name")
        elif self._modules.get(name, path) != path:
            what = f"{name!r}, which is a module here, as another name"
            self._refuse("A210", what, node, "choose another name")

    def _check_import_from(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            self._refuse("A201", "a relative import", node, "import torch, math and typing only")
        elif self._check_module(node.module, node):
            for alias in node.names:
                if alias.name == "*":
                    what = f"`from {node.module} import *`"
                    self._refuse("A201", what, node, "import names one by one")
                    continue
                name, path = _import_of(alias, node.module)
                if path not in vocabulary.MODULES:
                    self._check_member(node.module, alias.name, node)
                self._check_binding(name, path if path in vocabulary.MODULES else "", node)

    def _check_module(self, module: str, node: ast.AST) -> bool:
        if module in vocabulary.MODULES:
            return True
        hint = vocabulary.HINTS.get(
            module.split(".")[0], "torch, math and typing are all that a reward may import"
        )
        self._refuse("A201", f"`import {module}`", node, hint)
        return False

    def _check_attribute(self, node: ast.Attribute, local: frozenset[str] | None) -> None:
        if not isinstance(node.ctx, ast.Load):
            self._refuse("A205", f"writing to the attribute {node.attr!r}", node, PURE)
        inner = self._path(node.value)
        if inner in vocabulary.MODULES:
            path = f"{inner}.{node.attr}"
            if path in vocabulary.MODULES:
                hint = "call its functions by their full names"
                self._refuse("A210", f"the module `{path}` as a value", node, hint)
            else:
                self._check_member(inner, node.attr, node)
            return
        before = len(self.findings)
        self.check(node.value, local)
        if inner and len(self.findings) > before:
            return  # one finding for a path is enough
        if node.attr.startswith("_"):
            hint = "use public attributes of tensors only"
            self._refuse("A203", f"the attribute {node.attr!r}", node, hint)
        elif node.attr not in vocabulary.ATTRIBUTES:
            self._refuse("A209", f"`.{node.attr}`", node, _hint(node.attr, vocabulary.ATTRIBUTES))

    def _check_member(self, module: str, name: str, node: ast.AST) -> None:
        if name.startswith("_"):
            self._refuse("A203", f"`{module}.{name}`", node, "use public functions only")
        elif name not in vocabulary.MODULES[module]:
            hint = _hint(name, vocabulary.MODULES[module])
            self._refuse("A204", f"`{module}.{name}`", node, hint)

    def _path(self, node: ast.AST) -> str:
        """Full path of a module's member: `torch.nn.functional.relu` for `F.relu`; else empty."""
        if isinstance(node, ast.Name):
            return self._modules.get(node.id, "")
        inner = self._path(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{inner}.{node.attr}" if inner and isinstance(node, ast.Attribute) else ""

    def _path_of_member(self, node: ast.AST) -> str:
        """As `_path`, also of a name that is imported by itself."""
        return self._path(node) or (
            self._members.get(node.id, "") if isinstance(node, ast.Name) else ""
        )

    def _refuse(self, code: str, what: str, node: ast.AST, hint: str) -> None:
        self.findings.append(finding(code, f"{what} is not allowed in a reward", node, hint))


def _harmless(node: ast.AST, own: set[str]) -> Iterator[ast.AST]:
    """The class Tensor where it names a type or copies literals, sets where their order makes no
    difference, and views of dicts that are looped over. `own`: names that the source binds."""
    match node:
        case ast.For(iter=looped) | ast.comprehension(iter=looped) | ast.Starred(value=looped):
            yield from _views(looped)
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in BUILTINS - own:
            yield from _views(*arguments)
    match node:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]) if "isinstance" not in own:
            yield from kind.elts if isinstance(kind, ast.Tuple) else (kind,)
        case ast.Call(func=ast.Name(id="len" | "sorted" as name), args=[ordered], keywords=[]):
            if name not in own:
                yield from (ordered, getattr(ordered, "func", ordered))
        case ast.Call(func=kind, args=[ast.List() | ast.Tuple()], keywords=[]):
            if not isinstance(kind, ast.Name) or kind.id not in _SETS:
                yield kind
        case ast.Compare(comparators=[ordered], ops=[ast.In() | ast.NotIn()]):
            yield from (ordered, getattr(ordered, "func", ordered))
        case ast.Subscript(slice=kinds):
            yield from kinds.elts if isinstance(kinds, ast.Tuple) else (kinds,)


def _views(*nodes: ast.AST) -> Iterator[ast.AST]:
    """The calls for a dict's keys or items, which operators take for sets."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr=name) as method) if name in _VIEWS:
                yield method


def changes(method: str) -> bool:
    return method in vocabulary.CHANGES or (method.endswith("_") and not method.endswith("__"))


def names_bound(tree: ast.AST, imported: bool = True) -> set[str]:
    """All names bound anywhere in a syntax tree, with or without those of imports."""
    names = {name for name, _ in imports(tree)} if imported else set()
    for node in syntax.nodes(tree):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.FunctionDef(name=name)
            ):
                names.add(name)
    return names


def names_used(tree: ast.AST, context: type[ast.expr_context] = ast.Load) -> list[str]:
    """Names that are read anywhere in a syntax tree, or stored with `ast.Store`."""
    names = (node for node in syntax.nodes(tree) if isinstance(node, ast.Name))
    return [node.id for node in names if isinstance(node.ctx, context)]


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that imports bind, with their paths: `F` and `torch.nn.functional`."""
    for node in syntax.nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            yield from (_import_of(alias, module) for alias in node.names)


def _import_of(alias: ast.alias, module: str = "") -> tuple[str, str]:
    """Name and path of an import. `import torch.nn` binds `torch`."""
    if module:
        return alias.asname or alias.name, f"{module}.{alias.name}"
    root = alias.name.split(".")[0]
    return (alias.asname, alias.name) if alias.asname else (root, root)


def _hint(name: str, allowed: Collection[str]) -> str:
    close = difflib.get_close_matches(name, sorted(allowed), n=1, cutoff=0.7)
    return vocabulary.HINTS.get(name) or (f"did you mean {close[0]!r}?" if close else PURE)

"""The critic's second step: which Python a reward may use. A filter for good messages; the wall is elsewhere."""

from __future__ import annotations

import ast

from eureka_agent.critic import vocabulary
from eureka_agent.critic.findings import finding
from eureka_agent.critic.names import names_defined
from eureka_agent.critic.vocabulary import PURE
from eureka_agent.records import Finding

_RETURN_VALUES = "return the values"
_AVOID_ERRORS = "avoid the error in place of catching it, with `torch.where` or `clamp`"


def check_allow_list(tree: ast.Module) -> list[Finding]:
    """Findings on everything that is not plain, pure arithmetic on tensors, in the order of the lines."""
    visitor = _AllowList(tree)
    visitor.visit(tree)
    return sorted(visitor.findings, key=lambda item: (item.line or 0, item.column or 0))


class _AllowList(ast.NodeVisitor):
    """Visits what is executed. Annotations are left out: the trainer never evaluates them."""

    def __init__(self, tree: ast.Module) -> None:
        self.findings: list[Finding] = []
        self._defined = names_defined(tree)
        self._imported = _modules_imported(tree)

    # ── imports and names ───────────────────────────────────────────────────────────────────────────────────────────

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._check_module(alias.name, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            self._refuse("A201", "a relative import", node, "import torch, math and typing only")
            return
        if not self._check_module(node.module, node):
            return
        for alias in node.names:
            if alias.name == "*":
                self._refuse("A201", f"`from {node.module} import *`", node, "import names one by one")
            else:
                self._check_torch_path(f"{node.module}.{alias.name}", node)

    def visit_Name(self, node: ast.Name) -> None:
        name = node.id
        if name.startswith("__"):
            self._refuse("A203", f"the name {name!r}", node, "use plain names only")
        elif not isinstance(node.ctx, ast.Load):
            return
        elif name in self._imported:  # the beginning of a path does not come here: see visit_Attribute
            self._refuse("A210", f"the module {name!r} as a value", node, "call its functions by their full names")
        elif name in vocabulary.ALL_BUILTINS - vocabulary.BUILTINS and name not in self._defined:
            self._refuse("A202", f"the built-in {name!r}", node, vocabulary.BUILTIN_HINTS.get(name, PURE))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._module_path(_dotted(node))
        if node.attr.startswith("__"):
            self._refuse("A203", f"the attribute {node.attr!r}", node, "use public attributes of tensors only")
        if not isinstance(node.ctx, ast.Load):
            self._refuse("A205", f"writing to the attribute {node.attr!r}", node, PURE)
        if path is not None:
            self._check_torch_path(path, node)
            return  # the inner nodes are parts of the same path
        if node.attr in vocabulary.METHODS_REFUSED:
            self._refuse("A209", f"`.{node.attr}` ({vocabulary.METHODS_REFUSED[node.attr]})", node, PURE)
        self.generic_visit(node)

    # ── statements ──────────────────────────────────────────────────────────────────────────────────────────────────

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for decorator in node.decorator_list:
            if _dotted(decorator) != "torch.jit.script":
                what = f"the decorator `@{ast.unparse(decorator)}`"
                self._refuse("A207", what, decorator, "only `@torch.jit.script` is accepted")
        self._visit_function(node.args, node.body)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_function(node.args, [node.body])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def visit_Global(self, node: ast.Global) -> None:
        self._refuse("A205", f"`global {', '.join(node.names)}`", node, PURE)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self._refuse("A205", f"`nonlocal {', '.join(node.names)}`", node, PURE)

    def visit_While(self, node: ast.While) -> None:
        hint = "use tensor operations, or `for … in range(n)` with a fixed n"
        self._refuse("A208", "a `while` loop", node, hint)
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._refuse("A206", f"the class {node.name!r}", node, "use plain functions and named constants")

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._refuse("A206", f"`async def {node.name}`", node, "use a plain function")

    def visit_Try(self, node: ast.Try) -> None:
        self._refuse("A206", "`try`", node, _AVOID_ERRORS)
        self.generic_visit(node)

    def visit_TryStar(self, node: ast.TryStar) -> None:
        self._refuse("A206", "`try`", node, _AVOID_ERRORS)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if ast.unparse(item.context_expr) != "torch.no_grad()":
                hint = "leave it out: rewards are called without gradients as it is"
                self._refuse("A206", f"`with {ast.unparse(item.context_expr)}`", node, hint)
        for statement in node.body:
            self.visit(statement)

    def visit_Yield(self, node: ast.Yield) -> None:
        self._refuse("A206", "`yield`", node, _RETURN_VALUES)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        self._refuse("A206", "`yield from`", node, _RETURN_VALUES)

    def visit_Await(self, node: ast.Await) -> None:
        self._refuse("A206", "`await`", node, _RETURN_VALUES)

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _visit_function(self, arguments: ast.arguments, body: list[ast.stmt] | list[ast.expr]) -> None:
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg) and argument.arg.startswith("__"):
                self._refuse("A203", f"the argument {argument.arg!r}", argument, "use plain names only")
        for default in (*arguments.defaults, *(item for item in arguments.kw_defaults if item is not None)):
            self.visit(default)
        for node in body:
            self.visit(node)

    def _check_module(self, module: str, node: ast.AST) -> bool:
        if module in vocabulary.TORCH_MODULES or module in vocabulary.OTHER_MODULES:
            return True
        if module.split(".")[0] in vocabulary.ARRAY_LIBRARIES:
            hint = "write it with torch: most of these functions have the same name there"
        elif module == "random":
            hint = "leave random numbers out: a reward is a pure function"
        else:
            hint = "torch, math and typing are all that a reward may import"
        self._refuse("A201", f"`import {module}`", node, hint)
        return False

    def _module_path(self, path: str) -> str | None:
        """`torch.nn.functional.relu` for `F.relu`: the full path of what begins with an imported module; None for others."""
        root, _, rest = path.partition(".")
        module = self._imported.get(root)
        return f"{module}.{rest}" if module is not None and rest else None

    def _check_torch_path(self, path: str, node: ast.AST) -> None:
        """A name within a module, such as `torch.nn.functional.relu`; within torch only arithmetic is let through."""
        parts = path.split(".")
        module, name = parts[0], parts[1]
        if any(part.startswith("_") for part in parts[1:]) and module != "__future__":
            self._refuse("A203", f"`{path}`", node, "use public functions only")
        elif module != "torch":
            return
        elif stranger := next(
            (each for each in parts[1:] if each in vocabulary.PYTHON_MODULES or each == "torch"), None
        ):
            self._refuse("A204", f"`{path}` (the module {stranger!r})", node, PURE)
        elif len(parts) > 2 and name in vocabulary.TORCH_REACHES - vocabulary.TORCH_NESTED:
            self._refuse("A204", f"`{path}` (no arithmetic on tensors)", node, PURE)
        elif parts[-1] in vocabulary.TORCH_REACHES and not isinstance(node, ast.ImportFrom):
            self._refuse("A210", f"the module `{path}` as a value", node, "call its functions by their full names")
        elif name in vocabulary.TORCH_REFUSED:
            what = f"`torch.{name}` ({vocabulary.TORCH_REFUSED[name]})"
            self._refuse("A204", what, node, "use torch's arithmetic on the arguments alone")
        elif name == "nn" and parts[2:3] not in ([], ["functional"]):
            self._refuse("A204", f"`{path}` (a module with parameters)", node, "use `torch.nn.functional`")
        elif name == "nn" and parts[-1] in vocabulary.FUNCTIONAL_RANDOM:
            self._refuse("A204", f"`{path}` (random numbers)", node, PURE)
        elif name == "jit" and parts[2:3] not in ([], ["script"]):
            self._refuse("A204", f"`{path}` (compilation)", node, "leave it out")
        elif parts[-1] in vocabulary.METHODS_REFUSED:
            self._refuse("A209", f"`.{parts[-1]}` ({vocabulary.METHODS_REFUSED[parts[-1]]})", node, PURE)

    def _refuse(self, code: str, what: str, node: ast.AST, hint: str) -> None:
        self.findings.append(finding(code, f"{what} is not allowed in a reward", node, hint))


def _dotted(node: ast.AST) -> str:
    """`torch.nn.functional` of such an expression; empty for one that is no dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _modules_imported(tree: ast.Module) -> dict[str, str]:
    """Local name → module. torch and math are there without an import."""
    modules = {"torch": "torch", "math": "math"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.split(".")[0]
                modules[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if f"{node.module}.{alias.name}" in vocabulary.TORCH_MODULES:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return modules

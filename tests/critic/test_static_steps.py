"""Parse, allow-list and contract: one case a line, with the code, the line and a part of what is
said."""

from __future__ import annotations

import ast
import importlib

import pytest
import torch

from eureka_agent.critic import vocabulary
from eureka_agent.critic.allow_list import check_allow_list
from eureka_agent.critic.contract import check_contract, contract_fault
from eureka_agent.critic.parse import parse
from eureka_agent.records import TaskDescription, VariableSpec
from eureka_agent.rewards import baseline

DESCRIPTION = TaskDescription(
    environment="walker",
    task="run",
    sentence="run",
    doc="",
    fitness_doc="metres",
    fitness_unit="m",
    fitness_reduction="sum",
    success_fitness=None,
    variables=(
        VariableSpec(name="actions", shape=(2,), unit="1", frame="joint", doc=""),
        VariableSpec(name="torso_velocity", shape=(3,), unit="m/s", frame="world", doc=""),
        VariableSpec(name="distance_run", shape=(), unit="m", frame="world", doc="", private=True),
    ),
    num_observations=3,
    num_actions=2,
    control_dt=0.02,
    max_episode_length=100,
    termination_causes=("fell",),
    env_steps=1000,
    num_envs=4,
    training_overrides={},
    human_reward=None,
    sparse_reward=None,
    fingerprint="0",
)

GOOD = """
import math
from typing import Dict, Tuple
import torch
import torch.nn.functional as F

WEIGHT: float = 0.05

@torch.jit.script
def bonus(speed: torch.Tensor, temperature: float) -> torch.Tensor:
    return torch.exp(-temperature * (speed - 1.0).square())

def compute_reward(torso_velocity: Tensor, previous_torso_velocity: Tensor, actions: Tensor) -> Tuple[Tensor, Dict[str, Tensor]]:
    forward = torso_velocity[:, 0]
    effort = -WEIGHT * F.relu(actions.square().sum(dim=-1))
    terms = {"forward": forward, "effort": effort, "bonus": bonus(forward, math.pi)}
    terms["jerk"] = -(torso_velocity - previous_torso_velocity).norm(dim=-1)
    total = sum(terms.values())
    return total, {name: value for name, value in terms.items()}
"""


def test_a_reward_in_the_style_of_published_ones_passes_every_static_step() -> None:
    tree, findings = parse(GOOD)
    assert tree is not None
    assert findings == []
    assert check_allow_list(tree) == []
    assert check_contract(tree, DESCRIPTION) == []


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        ("", "P101", None),
        ("  \n\t\n", "P101", None),
        ("x = 1\n" * 20_000, "P102", None),
        ("x = " + "a<" * 20_000 + "a", "P102", None),
        ("def compute_reward(a):\n    return (a, {}", "P103", 2),
        ("def compute_reward(a):\n    return a\n\n  return a", "P103", 4),
        ("Here is your reward:\n", "P103", 1),
        ("return 1", "P103", 1),
        ("x = '\0'", "P103", None),
        ("x = " + "[" * 150 + "]" * 150, "P104", None),
        ("x = " + "-" * 5000 + "1", "P104", None),
    ],
)
@pytest.mark.usefixtures("no_collection")
def test_what_is_no_python_is_told_apart(source: str, code: str, line: int | None) -> None:
    tree, findings = parse(source)
    assert tree is None
    assert len(findings) == 1
    assert findings[0].code == code
    if line is not None:
        assert findings[0].line == line


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("import os", "A201", "`import os` is not allowed"),
        ("from subprocess import run", "A201", "`import subprocess`"),
        ("import numpy as np", "A201", "write it with torch"),
        ("from torch import *", "A201", "one by one"),
        ("from . import torch", "A201", "a relative import"),
        ("open('/etc/passwd')", "A202", "reads no files"),
        ("getattr(torch, 'load')", "A202", "'getattr'"),
        ("eval('1')", "A202", "'eval'"),
        ("__import__('os')", "A203", "'__import__'"),
        ("x = (1).__class__", "A203", "'__class__'"),
        ("x = torch._C", "A203", "torch._C"),
        ("f = lambda __x: 1", "A203", "'__x'"),
        ("x = torch.load('x')", "A204", "`torch.load`"),
        ("x = torch.randn(3)", "A204", "random numbers"),
        ("from torch.nn import functional as G\nx = G.dropout(1)", "A204", "random numbers"),
        ("x = torch.nn.Linear(1, 1)", "A204", "`torch.nn.Linear`"),
        ("x = torch.empty(3)", "A204", "holds anything"),
        ("def f():\n    global x\n    x = 1", "A205", "global x"),
        (
            "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2",
            "A205",
            "nonlocal x",
        ),
        ("torch.nn.functional.relu = 1", "A205", "relu"),
        ("def f():\n    f.calls = 1", "A205", "'calls'"),
        ("class A:\n    pass", "A206", "`class A:`"),
        ("def f():\n    yield 1", "A206", "yield"),
        ("async def f():\n    pass", "A206", "async def f"),
        ("try:\n    x = 1\nexcept Exception:\n    x = 2", "A206", "torch.where"),
        ("with torch.enable_grad():\n    x = 1", "A206", "with"),
        ("@torch.compile\ndef f():\n    return 1", "A207", "@torch.compile"),
        ("while True:\n    x = 1", "A208", "range(n)"),
        ("x = torch.zeros(1).numpy()", "A209", ".numpy"),
        ("x = torch.zeros(1).normal_()", "A209", "random"),
        ("x = torch.Tensor.numpy", "A204", "torch.Tensor"),
        ("x = torch\nx.load('y')", "A210", "module 'torch'"),
        # ways around a list of what is bad
        ("import typing\nx = typing.sys.modules", "A204", "`typing.sys`"),
        ("import typing\nx = typing.get_type_hints(1)", "A204", "`typing.get_type_hints`"),
        ("from typing import sys", "A204", "`typing.sys`"),
        ("with torch.no_grad() as got[eval('1')]:\n    pass", "A206", "eval"),
        ("match torch:\n    case object(load=f):\n        f('x')", "A206", "`match torch:`"),
        (
            "def f():\n    import math as t\n    return t.pi\nimport torch as t\nt.load('x')",
            "A210",
            "'t'",
        ),
        ("import math as torch\ntorch.load('x')", "A210", "'torch'"),
        ("def f(eval):\n    return 1\nx = eval('1')", "A202", "'eval'"),
        ("for open in []:\n    pass\nopen('x')", "A202", "'open'"),
        ("x = '{0.x}'.format(torch)", "A209", "`.format`"),
        ("x = torch.nn.functional.torch.load('x')", "A204", "`torch.nn.functional.torch`"),
        ("x = torch.zeros(3).clmap()", "A209", "did you mean 'clamp'?"),
        # what outlives a call
        ("SEEN = []\ndef f(x):\n    SEEN.append(x)", "A205", "'SEEN'"),
        ("SEEN = {}\ndef f(x):\n    SEEN['a'] = x", "A205", "'SEEN'"),
        (
            "BEST = torch.zeros(3)\ndef f(x):\n    def g():\n        BEST[0].add_(x)",
            "A205",
            "'BEST'",
        ),
        ("def f(x, seen=[]):\n    seen.append(x)", "A205", "`[]`"),
        ("def f(x, *, seen=[]):\n    seen.append(x)", "A205", "`[]`"),
        ("x = [math]", "A210", "module 'math'"),
        # writable views of what outlives a call, and memory as it was left
        ("x = torch.asarray(b'0000', dtype=torch.float32)", "A204", "which copies"),
        ("from torch import asarray as a\nx = a(b'0000')", "A204", "torch.asarray"),
        ("x = torch.frombuffer(b'0000', dtype=torch.float32)", "A204", "which copies"),
        ("x = torch.Tensor(3)", "A204", "may hold anything"),
        ("from torch import Tensor as T\nx = T(3)", "A204", "may hold anything"),
        ("make = Tensor\nx = make(3)", "A204", "may hold anything"),
        ("x = Union[Tensor](3)", "A204", "may hold anything"),
        ("def isinstance(x, c):\n    return c(x)\nx = isinstance(3, Tensor)", "A204", "anything"),
        ("x = torch.empty_like(y)", "A204", "holds anything"),
        ("x = torch.empty_strided((2,), (1,))", "A204", "torch.empty_strided"),
        ("x = y.new_empty(3)", "A209", "holds anything"),
        ("x = y.resize_(9)", "A209", ".resize_"),
        ("LAST = torch.zeros(3)\ndef f(x):\n    torch.abs(x, out=LAST)", "A205", "`out=`"),
        ("L = torch.zeros(3)\nx = torch.nn.functional.relu(L, inplace=True)", "A205", "inplace"),
        ("LAST = torch.zeros(3)\ndef f(x):\n    torch.Tensor.add_(LAST, x)", "A204", "Tensor"),
        # an order that each process has anew
        ("for name in {'a', 'b'}:\n    x = name", "A206", "differs from process to process"),
        ("x = [n for n in {len(m) for m in y}]", "A206", "differs from process to process"),
        ("make = set\nx = make('ab')", "A206", "differs from process to process"),
        ("x = sorted({'a', 'b'}, key=len)", "A206", "differs from process to process"),
        ("x = [n for n in a.keys() & b]", "A206", "`a.keys()` as a value"),
        ("x = list(a.items() | b.items())", "A206", "`a.items()` as a value"),
        ("k = a.keys\nx = [n for n in k() & b]", "A206", "`a.keys()` as a value"),
        ("k = a.keys()\nx = list(k - ('none',))", "A206", "loop over it, or make a list"),
        # writing into a tensor by a name in a dict
        ("torch.mul(x, x, **{'out': y})", "A205", "may hold `out=`"),
        # an address, which each process has anew, as text
        ("x = f'{torch.relu}'", "A206", "`torch.relu` as a value beside text"),
        ("f = torch.relu\nx = f'{f}'", "A206", "`torch.relu`"),
        ("from torch import relu\nx = f'{relu}'", "A206", "`relu`"),
        ("x = str([math.pi, torch.relu])", "A206", "`torch.relu`"),
        ("x = sorted((torch.cos, torch.sin), key=str)", "A206", "`torch.cos`"),
        ("x = f'{y.abs}'", "A206", "`y.abs`"),
        ("x = '%r' % ({}.get,)", "A206", "`{}.get`"),
        ("x = '%s' % (lambda y: y)", "A206", "`lambda y: y`"),
        ("def f(y):\n    return y\nx = f'{f}'", "A206", "`f`"),
        ("def f(y):\n    return str(y)\ndef g(y):\n    return f(f)\n", "A206", "`f`"),
        ("x = [str(each) for each in map(zip, y)]", "A206", "`zip`"),
        ("x = f'{zip(y, y)}'", "A206", "`zip(y, y)`"),
        ("x = str((n for n in y))", "A206", "`(n for n in y)`"),
        ("x = f'{torch.no_grad()!r}'", "A206", "`torch.no_grad()`"),
    ],
)
def test_the_allow_list_names_what_it_refuses(statement: str, code: str, said: str) -> None:
    findings = check_allow_list(ast.parse(statement))
    assert [item.code for item in findings].count(code) >= 1
    found = next(item for item in findings if item.code == code)
    assert said in f"{found.message} | {found.hint}"
    assert found.severity == "error"
    assert found.line is not None


def test_what_a_function_made_itself_it_may_change() -> None:
    source = """
def f(x):
    terms, total = {}, torch.zeros_like(x)
    terms["a"] = x
    total[x > 0] += 1.0
    def add(name, value):
        terms[name] = value
        total.add_(value)
    terms.update(b=x)
    return total, terms
"""
    assert check_allow_list(ast.parse(source)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "x = torch.Tensor([1.0, 2.0])",
        "x = isinstance(y, (Tensor, float)) or isinstance(y, torch.Tensor)",
        "Terms = Dict[str, Tensor]",
        "Pair = Tuple[Tensor, Dict[str, Optional[torch.Tensor]]]",
        "x = 'a' in {'a', 'b'} and y not in set(z)",
        "x = sorted({'a', 'b'})",
        "x = len(set(y))",
        "set = [1]\nx = set[0]",
        "x = torch.as_tensor([1.0])",
        "x = [k for k, v in a.items()] + sorted(a.keys()) + [*a.keys()]\nx = 'b' in a.keys()",
        # text of numbers and names, where functions are called alone
        "x = {f'{name}_{n}': torch.relu(y) for n, name in enumerate(('a', 'b'))}",
        "x = {f'within_{y.shape[0]:d}': y.max(dim=-1).values, str(torch.pi): y.T}",
        "square = lambda y: y * y\nx = {str(k): square(v) for k, v in zip(a, map(torch.abs, b))}",
        'def f(y):\n    "100 %"\n    return y\nx = [f]',
        # functions as values, where text is of numbers and literals alone
        "SHAPES = {'gauss': torch.exp, f'{1}': torch.tanh}\nx = 'w_%.1f %d' % (y, 3) + f'{y:.2f}'",
    ],
)
def test_what_is_the_same_in_every_process_passes(statement: str) -> None:
    assert check_allow_list(ast.parse(statement)) == []


def test_every_name_on_the_lists_exists() -> None:
    for module, names in vocabulary.MODULES.items():
        if module != "__future__":
            found = importlib.import_module(module)
            assert [name for name in names if not hasattr(found, name)] == []


def test_the_allow_list_lets_annotations_and_no_grad_be() -> None:
    source = (
        "def f(x: 'os.PathLike', y: np.ndarray = 1) -> Whatever:\n    z: Unknown = x\n    with"
        " torch.no_grad():\n        return z + y"
    )
    assert check_allow_list(ast.parse(source)) == []


def of(arguments: str, total: str = "actions") -> str:
    return f"def compute_reward({arguments}):\n    return {total}, {{}}\n"


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ("def f():\n    " + of("actions").replace("\n ", "\n     "), "C301", "top level"),
        ("x = 1", "C301", "define `compute_reward"),
        (of("actions") + of("actions"), "C302", "line 3"),
        (of("torso_velocty", "torso_velocty"), "C303", "did you mean 'torso_velocity'?"),
        (of("distance_run", "distance_run"), "C304", "private"),
        (of("previous_distance_run", "previous_distance_run"), "C304", "private"),
        (of("actions, weight=None", "actions * weight"), "C305", "'weight'"),
        (of("actions, *rest"), "C305", "'rest'"),
        (of("", "1"), "C306", "no variable"),
        (of("actions, torso_velocity"), "C307", "'torso_velocity'"),
        (of("actions") + "design_observation = 3\n", "C309", "'design_observation' is no function"),
        (
            of("actions")
            + "if True:\n    def design_observation(actions):\n        return actions\n",
            "C309",
            "at the top level",
        ),
        (
            of("actions") + "def design_observations(actions):\n    return actions\n",
            "C309",
            "'design_observations' is no function 'design_observation'",
        ),
    ],
)
def test_the_contract_is_read_off_the_source(source: str, code: str, said: str) -> None:
    found = [item for item in check_contract(ast.parse(source), DESCRIPTION) if item.code == code]
    assert found
    assert found[0].severity == ("warning" if code == "C307" else "error")
    assert said in f"{found[0].message} | {found[0].hint}"


@pytest.mark.parametrize(
    ("body", "name", "line", "hint"),
    [
        ("return torso_velocity + actions, {}", "torso_velocity", 2, "name it as an"),
        ("speed = actions\n    return sped, {}", "sped", 3, "did you mean 'speed'?"),
        ("return np.tanh(actions), {}", "np", 2, "torch function of the same name"),
        ("return distance_run + actions, {}", "distance_run", 2, "define it"),
    ],
)
def test_a_name_that_nothing_defines_is_found_at_its_first_use(
    body: str, name: str, line: int, hint: str
) -> None:
    source = f"def compute_reward(actions: Whatever) -> Unknown:\n    {body}\n"
    (found,) = check_contract(ast.parse(source), DESCRIPTION)
    assert (found.code, found.line) == ("C311", line)
    assert repr(name) in found.message
    assert hint in found.hint


def test_a_trusted_reward_may_read_private_variables() -> None:
    tree = ast.parse(of("distance_run", "distance_run"))
    assert check_contract(tree, DESCRIPTION, trusted=True) == []


def test_a_finding_points_at_the_argument_itself() -> None:
    tree = ast.parse(
        "def compute_reward(\n    actions,\n    torso_velocty,\n):\n    return actions, {}"
    )
    found = next(item for item in check_contract(tree, DESCRIPTION) if item.code == "C303")
    assert (found.line, found.column) == (3, 5)


def test_no_setting_of_torch_is_in_reach_of_a_reward() -> None:
    """A setting would hold for all trainings of the worker: `set_float32_matmul_precision` alone
    changes the neighbours' results."""
    settings = [
        name for name in dir(torch) if name.startswith(("set_", "use_", "init_", "autocast_"))
    ]
    assert "set_float32_matmul_precision" in settings
    for name in settings:
        assert [
            finding.code
            for finding in check_allow_list(ast.parse(f"import torch\ntorch.{name}(x)"))
        ] == ["A204"], name


@pytest.mark.parametrize(
    ("argument", "fault"),
    [("torso_velocity", ""), ("torso_speed", "torso_speed"), ("x)(", "it is not valid Python")],
)
def test_a_baseline_that_does_not_fit_its_environment_says_why(argument: str, fault: str) -> None:
    source = f"def compute_reward({argument}):\n    return 1, {{}}\n"
    found = contract_fault(baseline(source), DESCRIPTION)
    assert fault in found
    assert bool(found) == bool(fault)

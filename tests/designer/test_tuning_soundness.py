"""What is said of a constant without running the reward, against what random rewards compute."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from eureka_agent.designer.tuning.constants import tunable_constants
from eureka_agent.designer.tuning.rescaling import only_rescales

FORMS = (
    "({0} * {1})", "({0} * W)", "(W * {0})", "({0} / W)", "({0} + {1})", "({0} - {1})", "(-{0})", "({0})**2", "({0})**W", "DOUBLE * {0}",
    "({0} * x).abs()", "torch.exp(-({0} * x).abs())", "({0} + x).square()", "torch.sqrt(({0} * x).abs())", "F.relu({0} * x)", "torch.maximum({0} * x, y)",
    "({0} * x).clamp(max=W)", "sum([{0}, {1}])", "sum([{0} * x], y)", "sum({{'a': {0}, 'b': {1}}}.values())", "helper({0})", "scaled({0})", "(x > {0}).float()",
    "torch.where(x > 0, {0} * x, {1} * y)", "({0} if x.shape[0] > 1 else {1})", "(lambda v: {0} + v)({1})", "torch.stack([{0} * x, {1} * x])[0]",
    "parts['a']", "(x * {0}).norm(dim=-1, keepdim=True)", "({0} * x).sum(dim=-1, keepdim=True)", "x[:, :W] * {0}", "x.expand(-1, W)[:, :1] * {0}",
)  # fmt: skip
STATEMENTS = (
    "{name} = {0}", "{name} = {0}", "{name}, other = {0}, {1}", "{name} = ({name} := {0}) + y", "parts['b'] = {0}\n    {name} = sum(parts.values())",
    "{name} = y\n    {name} *= {0}", "{name} = y\n    for each in (x, y):\n        {name} = {name} + each * {0}",
    "if x.shape[0] > 1:\n        {name} = {0}\n    else:\n        {name} = {1}", "def inner(v): return v * {0}\n    {name} = inner({1})",
)  # fmt: skip


def expression(generator: random.Random, names: list[str], depth: int) -> str:
    if depth == 0 or generator.random() < 0.15:
        return generator.choice(names)
    inner = [expression(generator, names, depth - 1) for _ in range(2)]
    return generator.choice(FORMS).format(*inner)


def program(seed: int) -> str:
    """A reward that may or may not be more than a power of `W`."""
    generator = random.Random(seed)
    names = ["x", "y", "W", "0.5"]
    lines = [
        "W = 2",
        f"DOUBLE = {generator.choice(['2 * W', '3.0', 'W + 1'])}",
        f"def helper(v): return v + {generator.choice(['1.0', 'W', 'DOUBLE'])}",
        f"def scaled(v): return v * {generator.choice(['2.0', 'W'])}",
        "def compute_reward(x, y):",
        f"    parts = {{'a': {expression(generator, names, 1)}}}",
    ]
    for name in generator.choices(["a", "b", "x", "total"], k=generator.randrange(4)):
        parts = [expression(generator, names, 2) for _ in range(2)]
        lines.append("    " + generator.choice(STATEMENTS).format(*parts, name=name))
        names.append(name)
    lines.append(f"    return {expression(generator, names, 2)}, {{}}")
    return "\n".join(lines) + "\n"


def total(source: str, constant: float) -> Tensor | None:
    """Of 64 states, with this constant; None where the reward fails or is not finite."""
    states = torch.Generator().manual_seed(0)
    x, y = (torch.randn(64, 1, generator=states, dtype=torch.float64) for _ in range(2))
    space: dict[str, object] = {"torch": torch, "F": F}
    try:
        exec(source.replace("W = 2\n", f"W = {constant!r}\n", 1), space)
        value = space["compute_reward"](x.clone(), y.clone())[0] + torch.zeros_like(x)  # type: ignore[operator]
    except (TypeError, RuntimeError, NameError, AttributeError, ValueError):
        return None
    return value if value.isfinite().all() else None


@pytest.mark.slow
def test_what_is_said_of_a_constant_is_true() -> None:
    """In doubt a constant counts and a whole number stays one; so only one direction has to
    hold."""
    rescaling = whole = 0
    for seed in range(2000):
        source = program(seed)
        before, after = total(source, 2), total(source, 6.0)
        if only_rescales(source, "W") and before is not None and after is not None:
            rescaling += 1
            factor = after.abs().sum() / before.abs().sum() if before.any() else torch.tensor(1.0)
            assert factor > 0.0, source
            torch.testing.assert_close(after, factor * before, rtol=1e-6, atol=1e-9, msg=source)
        if "W" in tunable_constants(source) and before is not None:
            whole += 1
            as_float = total(source, 2.0)
            assert as_float is not None, source
            torch.testing.assert_close(as_float, before, rtol=1e-9, atol=0.0, msg=source)
    assert rescaling > 200, "of these there were enough to tell"
    assert whole > 50

"""A broad list of what a reward may compute: every function of torch that the critic lets pass,
tried with a few kinds of arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from eureka_agent.critic.vocabulary import ATTRIBUTES, MODULES

_NAMES = ("torch", "torch.special", "torch.linalg", "torch.nn.functional")
ALLOWED = {**{name: MODULES[name] for name in _NAMES}, "torch.Tensor": ATTRIBUTES}


def arguments() -> Iterator[tuple[Any, ...]]:
    """Kinds of arguments, from the plainest on."""
    generator = torch.Generator().manual_seed(3)
    x, y = torch.rand(24, 3, generator=generator), torch.rand(24, 3, generator=generator) + 0.5
    square = torch.rand(5, 4, 4, generator=generator) + 4 * torch.eye(4)
    shapes = ((2, 3, 9, 9), (5, 3, 3, 3), (2, 3, 20), (5, 3, 4))
    picture, kernel, line, line_kernel = (torch.rand(each, generator=generator) for each in shapes)
    yield from [(square[0],), (square[0], square[0]), (square, square), (line, 2), (picture, 2)]
    yield from [(x.long(), y.long()), (x, 0, 1), (5,), (x, y, y), (x[:, 0], y[:, 0]), (x, (-1, 3))]
    yield from [((x, y),), (x, [0, 1]), (x > 0.5, x, y), (picture, kernel), (line, line_kernel)]
    yield from [(x.to(torch.complex64),), (x.half(),)]


def broad_list() -> dict[str, Callable[[], Any]]:
    """Calls by name: every function of `ALLOWED` with every kind of arguments. Many of them
    raise."""
    calls = {}
    for module, names in ALLOWED.items():
        place: Any = torch
        for part in module.split(".")[1:]:
            place = getattr(place, part)
        for name in sorted(names):
            if not callable(getattr(place, name, None)) or isinstance(getattr(place, name), type):
                continue
            kinds = list(arguments())
            # methods are mostly the same functions
            for number, given in enumerate(kinds[:4] if module == "torch.Tensor" else kinds):
                calls[f"{module}.{name}/{number}"] = _call(getattr(place, name), given)
    return calls | _by_hand()


def _call(function: Callable[..., Any], given: tuple[Any, ...]) -> Callable[[], Any]:
    return lambda: function(*(each.clone() if isinstance(each, Tensor) else each for each in given))


def _by_hand() -> dict[str, Callable[[], Any]]:
    """Calls that the signatures above do not fit."""
    functional = torch.nn.functional
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    kinds = (*whole, torch.float16, torch.bfloat16, torch.float32, torch.float64)

    def inputs() -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(4)
        x, y = torch.randn(40, 3, generator=generator), torch.randn(40, 3, generator=generator)
        q = functional.normalize(torch.randn(40, 4, generator=generator), dim=-1)
        return x, y, q

    def of(function: Callable[[Tensor, Tensor, Tensor], Any]) -> Callable[[], Any]:
        return lambda: function(*inputs())

    def gradient() -> Tensor:
        x = inputs()[0].requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad(x.tanh().square().sum(), x)[0]

    def products(kind: torch.dtype) -> list[Tensor]:
        """Products of shapes below, at and above the blocks that a product is cut into."""
        sizes = ((1, 1, 1), (3, 5, 7), (24, 3, 24), (60, 33, 9), (300, 200, 70))
        made = []
        for rows, depth, columns in sizes:
            x = (torch.arange(rows * depth).view(rows, depth) % 7 - 3).to(kind)
            y = (torch.arange(depth * columns).view(depth, columns) % 5 - 2).to(kind)
            made += [
                x @ y,
                y.T @ x.T,
                torch.addmm(x @ y, x, y),
                torch.stack([x, x]) @ y,
                functional.linear(x, y.T),
                x @ y[:, 0],
            ]
        return made

    def bags(kind: torch.dtype) -> list[Tensor]:
        return [
            functional.embedding_bag(
                x.view(-1) % 9,
                torch.linspace(-1, 1, 9 * width).view(9, width).to(kind),
                rows,
                mode=mode,
            )
            for width in (1, 2, 3, 8, 16, 64, 100)
            for mode in ("sum", "mean", "max")
            for x, rows in (
                (torch.arange(12), torch.tensor([0, 5])),
                (torch.arange(12).int(), torch.tensor([0, 5]).int()),
            )
        ]

    def scripted() -> Tensor:
        return torch.func.vmap(lambda row: row.square().sum())(inputs()[0])

    return {
        "einsum": of(lambda x, y, q: torch.einsum("bi,bi->b", x, y)),
        "einsum of three": of(lambda x, y, q: torch.einsum("bi,bj,bk->bijk", x, y, q)),
        "large product": of(lambda x, y, q: (torch.ones(500, 40) @ x).T @ torch.ones(500, 300)),
        "many rows": of(
            lambda x, y, q: torch.exp(-torch.linspace(0, 1, 400_000).square()).cumsum(0)
        ),
        "sorted rows": of(lambda x, y, q: torch.linspace(0, 30, 300_000).sin().sort().values),
        **{f"products of {kind}": functools.partial(products, kind) for kind in kinds},
        **{f"bags of {kind}": functools.partial(bags, kind) for kind in kinds[-4:]},
        "random numbers": lambda: torch.rand(5, generator=torch.Generator().manual_seed(1)),
        "sparse": of(lambda x, y, q: torch.sparse.mm(x.to_sparse(), y.T)),
        "gradient": gradient,
        "vmap": scripted,
        "numpy": of(lambda x, y, q: torch.from_numpy(x.numpy() * 2)),
        "text": of(
            lambda x, y, q: (
                f"{x} {y[0]:} {q[0, 0]:.3f} {x.bool()} {x.dtype} {x.to(torch.complex64)}"
            )
        ),
        "scalars": of(lambda x, y, q: torch.tensor(x.tolist()) + x.sum().item()),
    }


def outcomes(calls: dict[str, Callable[[], Any]]) -> dict[str, str]:
    """Results to the last bit, or errors, by name."""
    found = {}
    for name, call in calls.items():
        try:
            found[name] = _text(call())
        except Exception as error:  # noqa: BLE001  (whatever they raise, inside and outside should agree)
            found[name] = f"{type(error).__name__}: {str(error)[:200]}"
    return found


def _text(value: Any) -> str:
    if isinstance(value, Tensor):
        plain = value.detach()
        if plain.layout is not torch.strided or plain.is_quantized:
            return f"{plain.layout} {plain.dtype} {tuple(plain.shape)}"
        double = plain.to(torch.complex128) if plain.is_complex() else plain.double()
        return (
            f"{plain.dtype} {tuple(plain.shape)}"
            f" {hash(double.contiguous().resolve_conj().resolve_neg().numpy().tobytes())}"
        )
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_text(each) for each in value)}]"
    return value if isinstance(value, str) else type(value).__name__

"""The allow-list's tables: all that a reward may import, call and read. Everything else is refused.
And values whose text holds an address, which differs from process to process: a reward that turns
values into text may call functions and loop over iterators, and not keep them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator

from eureka_agent.reward_names import BUILTINS, HELPER_NAMES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALWAYS_DEFINED = _words(
    "torch math Tensor Any Dict List Optional Sequence Tuple Union"
) | frozenset(HELPER_NAMES)

_ELEMENTWISE = _words(
    """abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan
    arctan2 arctanh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil
    clamp clamp_max clamp_min clip copysign cos cosh deg2rad div divide eq erf erfc erfinv exp exp2
    expm1 fix float_power floor floor_divide fmax fmin fmod frac ge gt greater greater_equal
    heaviside hypot isclose isfinite isinf isnan isneginf isposinf ldexp le lerp less less_equal log
    log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt
    maximum minimum mul multiply nan_to_num ne neg negative not_equal positive pow rad2deg
    reciprocal relu remainder round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square sub
    subtract tan tanh true_divide trunc where xlogy"""
)
_SHAPES_AND_SUMS = _words(
    """all allclose amax amin aminmax any argmax argmin argsort bmm broadcast_to bucketize cat chunk
    clone concat concatenate count_nonzero cross cummax cummin cumprod cumsum det detach diag
    diag_embed diagonal diff dist dot equal fill flatten flip gather index_add index_fill
    index_select inner inverse is_complex is_floating_point kthvalue logsumexp logcumsumexp
    masked_fill masked_select matmul matrix_power max mean median min mm mode movedim moveaxis mv
    nanmean nanmedian nansum narrow nonzero norm numel outer permute prod quantile ravel
    repeat_interleave reshape roll scatter scatter_add select softmax log_softmax sort split squeeze
    std sum swapaxes swapdims t take take_along_dim tensor_split tile topk trace transpose tril triu
    unbind unflatten unique unsqueeze var view_as_real"""
)
_ARITHMETIC = _ELEMENTWISE | _SHAPES_AND_SUMS
TYPES = _words(
    "float32 float64 float16 bfloat16 float double half int int8 int16 int32 int64 uint8 long short"
    " bool"
)

MODULES: dict[str, frozenset[str]] = {
    "torch": (
        _ARITHMETIC
        | TYPES
        | _words(
            """Tensor Size device dtype finfo iinfo pi inf nan e no_grad arange as_tensor atleast_1d
            atleast_2d baddbmm block_diag broadcast_tensors cdist column_stack cosine_similarity
            einsum eye full full_like hstack is_tensor linspace logspace meshgrid ones ones_like
            polar pairwise_distance scalar_tensor searchsorted stack std_mean tensor tensordot
            trapezoid trapz var_mean vander vdot vstack zeros zeros_like"""
        )
    ),
    "torch.nn": frozenset(),
    "torch.nn.functional": _words(
        """celu cosine_similarity elu gelu hardshrink hardsigmoid hardswish hardtanh huber_loss
        l1_loss layer_norm leaky_relu log_softmax logsigmoid mish mse_loss normalize one_hot pad
        pairwise_distance relu relu6 selu sigmoid silu smooth_l1_loss softmax softmin softplus
        softshrink softsign tanh tanhshrink threshold"""
    ),
    "torch.linalg": _words(
        "cross det diagonal inv matmul matrix_norm multi_dot norm pinv solve vecdot vector_norm"
    ),
    "torch.special": _words(
        "erf erfc exp2 expit expm1 log1p log_softmax logit logsumexp sinc softmax xlogy"
    ),
    "torch.jit": _words("script"),
    "math": _words(
        """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh degrees dist e erf
        erfc exp exp2 expm1 fabs floor fmod fsum hypot inf isclose isfinite isinf isnan ldexp log
        log10 log1p log2 nan pi pow prod radians remainder sin sinh sqrt tan tanh tau trunc"""
    ),
    "typing": _words(
        "Any Callable Dict Final List Mapping NamedTuple Optional Sequence Tuple Union"
    ),
    "__future__": _words("annotations"),
}
"""Allowed names of each module that may be imported. A nested module has an entry of its own."""

ATTRIBUTES = (
    _ARITHMETIC
    | TYPES
    | {f"{name}_" for name in _ELEMENTWISE}
    | _words(
        """T mT H data device dtype ndim shape real imag is_cuda requires_grad contiguous copy_ cpu
        dim element_size expand expand_as fill_ fill_diagonal_ index_add_ index_copy_ index_fill_
        index_put_ item itemsize masked_fill_ masked_scatter_ ndimension nelement new_full new_ones
        new_tensor new_zeros repeat reshape_as scatter_ scatter_add_ size stride sum_to_size to type
        type_as unfold view view_as vsplit hsplit zero_ bits eps max min resolution smallest_normal
        tiny values indices index append clear copy count endswith extend get insert items keys
        lower pop remove replace reverse setdefault split startswith strip union update upper"""
    )
)
"""Attributes of tensors, dtypes, dicts, lists, strings. `format` reads any attribute: missing."""

CHANGES = _words("append clear extend insert pop remove reverse setdefault sort update")
"""Methods that change a dict or list. Those that change a tensor end with `_`."""

PURE = "a reward is a pure function of its arguments, written with torch"
_NO_RANDOM = "leave random numbers out: a reward is a pure function"
_WITH_TORCH = "write it with torch: most of these functions have the same name there"
HINTS = {
    **dict.fromkeys(
        ("numpy", "jax", "scipy", "tensorflow", "cupy", "pandas", "tolist"), _WITH_TORCH
    ),
    **dict.fromkeys(
        _words(
            "random rand randn randint rand_like randn_like normal bernoulli manual_seed dropout"
            " normal_ uniform_"
        ),
        _NO_RANDOM,
    ),
    "getattr": "write the attribute's name",
    "hasattr": "every argument is a tensor: there is nothing to look for",
    "open": "a reward reads no files: write constants into the source",
    "print": "return what you want to see as a component",
    "eval": "write the expression itself",
    "exec": "write the code itself",
    **dict.fromkeys(_words("empty empty_like new_empty"), "use `torch.zeros`: this holds anything"),
    **dict.fromkeys(_words("asarray frombuffer from_numpy"), "use `torch.tensor`, which copies"),
}
"""Hints for some refused names. The others get the nearest allowed name."""


_NUMBER = re.compile(r"%[-+ #0]*[\d*]*(\.[\d*]*)?[diouxXeEfFgGc%]")
"""A directive of `%` that refuses all but numbers."""
_ITERATORS = frozenset(("enumerate", "filter", "map", "reversed", "zip"))
_PLAIN_ATTRIBUTES = frozenset(
    """T mT H data device dtype ndim shape real imag is_cuda requires_grad itemsize bits eps tiny
    resolution smallest_normal""".split()  # noqa: SIM905
)
_PLAIN_ATTRIBUTES_OF_RESULTS = frozenset(("indices", "max", "min", "values"))
_PLAIN_MEMBERS = TYPES | {"pi", "inf", "nan", "e", "Tensor", "Size", "device", "dtype"}


def kept_addresses(
    tree: ast.Module, own: Collection[str], path: Callable[[ast.AST], str]
) -> list[ast.expr]:
    """Functions and iterators that a source keeps and could turn into text. `own`: names that it
    binds itself; `path`: of a module's member, or empty."""
    nodes = list(executed_nodes(tree))
    if not any(map(_makes_text, nodes)):
        return []
    functions = (set(HELPER_NAMES) | _ITERATORS) - set(own)
    for node in nodes:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda())
            ):
                functions.add(name)
    used = {id(part) for node in nodes for part in _used(node, own, path)}

    def has_address(node: ast.AST) -> bool:
        member = path(node)
        match node:
            case _ if member and member not in MODULES:
                module, _, name = member.rpartition(".")
                if name == "NamedTuple":
                    return True
                return module not in ("math", "typing") and name not in _PLAIN_MEMBERS
            case ast.Name(id=name, ctx=ast.Load()):
                return name in functions
            case ast.Attribute(attr=name, value=value) if not member:
                of_result = isinstance(value, ast.Call) and name in _PLAIN_ATTRIBUTES_OF_RESULTS
                return name not in _PLAIN_ATTRIBUTES and not of_result
            case ast.Call(func=called):
                return _is_iterator(node, own) or path(called) == "torch.no_grad"
        return isinstance(node, (ast.Lambda, ast.GeneratorExp))

    return [
        node
        for node in nodes
        if isinstance(node, ast.expr) and id(node) not in used and has_address(node)
    ]


def executed_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """All nodes without docstrings, and without annotations, which the trainer never evaluates."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        yield node
        annotations = {id(getattr(node, name, None)) for name in ("annotation", "returns")}
        waiting.extend(
            child for child in ast.iter_child_nodes(node) if id(child) not in annotations
        )


def _makes_text(node: ast.AST) -> bool:
    """True for what may turn any value into text: no literal, and no format for numbers alone."""
    match node:
        case ast.FormattedValue(value=ast.Constant()):
            return False
        case ast.FormattedValue(conversion=-1, format_spec=ast.JoinedStr(values=[ast.Constant()])):
            return False
        case ast.FormattedValue() | ast.Name(id="str"):
            return True
        case ast.Constant(value=str() | bytes() as text):
            return "%" in _NUMBER.sub("", text if isinstance(text, str) else text.decode("latin1"))
    return False


def _is_iterator(node: ast.AST, own: Collection[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in _ITERATORS and name not in own
    return isinstance(node, ast.GeneratorExp)


def _used(node: ast.AST, own: Collection[str], path: Callable[[ast.AST], str]) -> Iterator[ast.AST]:
    """Parts of a node that it calls, loops over or hands to a function that does."""
    match node:
        case ast.Call(func=called, args=arguments, keywords=keywords):
            yield called
            name = called.id if isinstance(called, ast.Name) and called.id not in own else ""
            if name in ("map", "filter"):
                yield from (each for each in arguments[:1] if not _is_maker(each))
            if name in ("max", "min", "sorted"):
                yield from (each.value for each in keywords if each.arg == "key")
            if (name and name != "str" and name in BUILTINS) or path(called):
                yield from (each for each in arguments if _is_iterator(each, own))
        case ast.For(iter=looped) | ast.comprehension(iter=looped) | ast.Starred(value=looped):
            yield looped
        case ast.Assign(targets=[ast.Name()], value=ast.Lambda() as value):
            yield value
        case ast.FunctionDef(decorator_list=decorators):
            yield from decorators
        case ast.withitem(context_expr=value) | ast.Attribute(value=value):
            yield value


def _is_maker(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _ITERATORS

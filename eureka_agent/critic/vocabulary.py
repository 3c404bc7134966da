"""Tables of the allow-list: all that a reward may import, call and read. Everything else is
refused."""

from __future__ import annotations

from eureka_agent.helper_names import HELPER_NAMES
from eureka_agent.reward_names import ALL_BUILTINS as ALL_BUILTINS
from eureka_agent.reward_names import BUILTINS as BUILTINS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALWAYS_DEFINED = _words(
    "torch math Tensor Any Dict List Optional Sequence Tuple Union"
) | frozenset(HELPER_NAMES)
"""Names that a reward has without an import."""

_ELEMENTWISE = _words(
    """abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan
    arctan2
    arctanh asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp
    clamp_max clamp_min clip copysign cos cosh deg2rad div divide eq erf erfc erfinv exp exp2
    expm1 fix float_power floor floor_divide fmax fmin fmod frac ge gt greater greater_equal
    heaviside hypot isclose isfinite isinf isnan isneginf isposinf ldexp le lerp less less_equal
    log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
    logit lt maximum minimum mul multiply nan_to_num ne neg negative not_equal positive pow
    rad2deg reciprocal relu remainder round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt
    square sub subtract tan tanh true_divide trunc where xlogy"""
)
_SHAPES_AND_SUMS = _words(
    """all allclose amax amin aminmax any argmax argmin argsort bmm broadcast_to bucketize cat chunk
    clone concat concatenate count_nonzero cross cummax cummin cumprod cumsum det detach diag
    diag_embed diagonal diff dist dot equal fill flatten flip gather index_add index_fill
    index_select inner inverse is_complex is_floating_point kthvalue logsumexp logcumsumexp
    masked_fill masked_select matmul matrix_power max mean median min mm mode movedim moveaxis mv
    nanmean nanmedian nansum narrow nonzero norm numel outer permute prod quantile ravel
    repeat_interleave reshape roll scatter scatter_add select softmax log_softmax sort split
    squeeze std sum swapaxes swapdims t take take_along_dim tensor_split tile topk trace
    transpose tril triu unbind unflatten unique unsqueeze var view_as_real"""
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
            """Tensor Size device dtype finfo iinfo pi inf nan e no_grad arange as_tensor
            atleast_1d
        atleast_2d baddbmm block_diag broadcast_tensors cdist column_stack cosine_similarity
        einsum eye full full_like hstack is_tensor linspace logspace meshgrid ones ones_like
        polar pairwise_distance scalar_tensor searchsorted stack std_mean tensor tensordot
        trapezoid trapz var_mean vander vdot vstack zeros zeros_like"""
        )
    ),
    "torch.nn": frozenset(),
    "torch.nn.functional": _words(
        """celu cosine_similarity elu gelu hardshrink hardsigmoid hardswish hardtanh huber_loss
        l1_loss
        layer_norm leaky_relu log_softmax logsigmoid mish mse_loss normalize one_hot pad
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
        erfc exp
        exp2 expm1 fabs floor fmod fsum hypot inf isclose isfinite isinf isnan ldexp log log10
        log1p log2 nan pi pow prod radians remainder sin sinh sqrt tan tanh tau trunc"""
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
        dim
        element_size expand expand_as fill_ fill_diagonal_ index_add_ index_copy_ index_fill_
        index_put_ item itemsize masked_fill_ masked_scatter_ ndimension nelement new_full
        new_ones new_tensor new_zeros repeat reshape_as scatter_ scatter_add_ size stride
        sum_to_size to type type_as unfold view view_as vsplit hsplit zero_ bits eps max min
        resolution smallest_normal tiny values indices index append clear copy count endswith
        extend get insert items keys lower pop remove replace reverse setdefault split startswith
        strip union update upper"""
    )
)
"""Attributes of tensors, and of a dtype's limits, dicts, lists and strings. `format` is missing: it
reads any attribute."""

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

"""The allow-list's tables: modules, built-in functions, and the parts of torch that a reward has no use for."""

from __future__ import annotations

import builtins
import sys


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _by_word(table: dict[str, str]) -> dict[str, str]:
    """From what is wrong with some words → the words, to word → what is wrong with it."""
    return {word: reason for reason, text in table.items() for word in text.split()}


TORCH_MODULES = _words("torch torch.nn torch.nn.functional torch.functional torch.linalg torch.special torch.jit")
OTHER_MODULES = _words("math typing __future__")
ARRAY_LIBRARIES = _words("numpy jax scipy tensorflow cupy pandas")
"""What a reward may have been written with elsewhere: torch has the same functions."""

ALWAYS_DEFINED = _words("torch math Tensor Any Dict List Optional Sequence Tuple Union")
"""Names that a reward finds without an import."""
BUILTINS = _words(
    """abs all any bool dict divmod enumerate filter float frozenset int isinstance len list map max min pow range reversed
    round set slice sorted str sum tuple zip True False None ValueError TypeError RuntimeError"""
)
ALL_BUILTINS = frozenset(dir(builtins))

PURE = "a reward is a pure function of its arguments, written with torch"
BUILTIN_HINTS = {
    "getattr": "write the attribute's name",
    "hasattr": "every argument is a tensor: there is nothing to look for",
    "open": "a reward reads no files: write constants into the source",
    "print": "return what you want to see as a component",
    "eval": "write the expression itself",
    "exec": "write the code itself",
}

TORCH_REFUSED = _by_word(
    {
        "files and code from elsewhere": """load save hub ops utils package serialization onnx export fx library classes
        storage from_file""",
        "devices, threads and processes": """cuda mps xpu cpu accelerator distributed multiprocessing futures backends
        set_default_device set_num_threads set_num_interop_threads init_num_threads fork wait""",
        "settings of the whole process": """compile compiler autograd overrides set_grad_enabled enable_grad set_printoptions
        set_default_dtype set_default_tensor_type use_deterministic_algorithms set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_anomaly_enabled set_warn_always set_vital
        set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_autocast_gpu_dtype set_autocast_ipu_dtype set_autocast_ipu_enabled set_autocast_xla_dtype
        set_autocast_xla_enabled autocast_increment_nesting autocast_decrement_nesting""",
        "random numbers": """rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson
        binomial seed manual_seed initial_seed random Generator default_generator get_rng_state set_rng_state dropout
        feature_dropout alpha_dropout rrelu""",
        "memory that holds anything": "empty empty_like empty_strided empty_permuted frombuffer from_dlpack to_dlpack",
        "the inside of torch": """PyTorchFileReader PyTorchFileWriter ScriptModuleSerializer FileCheck CompilationUnit LiteScriptModule StaticModule
        import_ir_module import_ir_module_from_buffer parse_ir get_file_path prepare_multiprocessing_environment ThroughputBenchmark
        UntypedStorage TypedStorage Storage StorageBase FloatStorage DoubleStorage HalfStorage BFloat16Storage BoolStorage ByteStorage CharStorage
        IntStorage LongStorage ShortStorage get_device_module""",
    }
)
"""Parts of torch that are not arithmetic on tensors, with what they are."""
TORCH_REACHES = _words(
    """torch amp ao contrib cpp distributions func functorch linalg masked masked monitor mtia nested optim overrides profiler quantization quasirandom
    return_types signal sparse special testing torch_version types version windows nn functional fft jit grad np F"""
)
"""Modules that are attributes of torch's own modules."""
TORCH_NESTED = _words("nn functional linalg special fft jit")
"""Those of them whose functions are arithmetic."""
PYTHON_MODULES = frozenset(sys.stdlib_module_names) - _words("math select trace copy")
"""What modules import is their attribute too. Those that are left out are functions of torch, or are allowed."""
FUNCTIONAL_RANDOM = _words(
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu gumbel_softmax"
)
METHODS_REFUSED = _by_word(
    {
        "leaves torch": "numpy tolist data_ptr storage untyped_storage share_memory_",
        "belongs to training, not to a reward": "backward requires_grad_ register_hook retain_grad",
        "draws random numbers": """normal_ uniform_ random_ bernoulli bernoulli_ exponential_ geometric_ cauchy_ log_normal_
        multinomial""",
        "moves the tensor to another device": "cuda cpu",
        "reads memory that holds anything": "new_empty",
        "reaches into Python itself": "mro gi_frame cr_frame f_globals f_locals f_back f_builtins tb_frame co_code",
    }
)
"""Attributes of any value that a reward may not use, with what is wrong with them."""

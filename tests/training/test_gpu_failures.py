from __future__ import annotations

import pytest
import torch

from eureka_agent.training.environment_faults import is_gpu_failure


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.AcceleratorError("CUDA error: unspecified launch failure"), True),
        (RuntimeError("Warp CUDA error 719: unspecified launch failure"), True),
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), False),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), False),
        (RuntimeError("CUDA error: out of memory"), False),
        (RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"), False),
    ],
)
def test_a_failing_gpu_is_told_from_faults_of_code_and_lack_of_memory(
    error: RuntimeError, expected: bool
) -> None:
    assert is_gpu_failure(error) is expected

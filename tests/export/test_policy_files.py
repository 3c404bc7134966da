"""The exported policies act as the run's policy does."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from export_runs import policy_tensors
from policy_files import save_policy

from eureka_agent.errors import RunFolderError
from eureka_agent.export import policy_files
from eureka_agent.training.distributions import Categorical
from eureka_agent.training.policy import load_policy


def saved(folder: Path, activation: str, sizes: tuple[int, ...], log_std: float = -0.5) -> Path:
    path = folder / "policy.safetensors"
    save_policy(path, policy_tensors(sizes, log_std=log_std), {"activation": activation})
    return path


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated")
@pytest.mark.parametrize(
    ("activation", "sizes", "log_std"),
    [("elu", (7, 32, 16, 3), -0.5), ("tanh", (3, 8, 1), 1.0), ("elu", (4, 2), -20.0)],
)
def test_both_files_give_the_policys_numbers(
    tmp_path: Path, activation: str, sizes: tuple[int, ...], log_std: float
) -> None:
    path = saved(tmp_path, activation, sizes, log_std)
    policy = load_policy(path)
    script = torch.jit.load(io.BytesIO(policy_files.torchscript(path)))
    session = onnxruntime.InferenceSession(policy_files.onnx_model(path))
    generator = torch.Generator().manual_seed(3)
    for batch, scale in ((1, 1.0), (2, 0.0), (257, 3.0), (64, 1e6)):
        observations = scale * torch.randn(batch, sizes[0], generator=generator)
        expected = policy.act(observations.clone())
        (action,) = session.run(["action"], {"observation": observations.numpy()})
        assert action.shape == (batch, sizes[-1])
        assert action.dtype == np.float32
        np.testing.assert_allclose(action, expected.numpy(), rtol=0.0, atol=1e-5)
        torch.testing.assert_close(script(observations.clone()), expected, rtol=0.0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated")
@pytest.mark.parametrize("choices", [(3,), (2, 4)])
def test_both_files_give_choices_and_logits(tmp_path: Path, choices: tuple[int, ...]) -> None:
    path = tmp_path / "policy.safetensors"
    metadata = {"activation": "elu", **Categorical(choices).metadata}
    save_policy(path, policy_tensors((5, 16, sum(choices))), metadata)
    policy = load_policy(path)
    script = torch.jit.load(io.BytesIO(policy_files.torchscript(path)))
    session = onnxruntime.InferenceSession(policy_files.onnx_model(path))
    assert [each.name for each in session.get_outputs()] == ["action", "logits"]
    generator = torch.Generator().manual_seed(3)
    for batch, scale in ((1, 1.0), (257, 3.0)):
        observations = scale * torch.randn(batch, 5, generator=generator)
        action, logits = session.run(["action", "logits"], {"observation": observations.numpy()})
        assert (action.dtype, logits.dtype) == (np.int64, np.float32)
        assert action.shape == ((batch,) if len(choices) == 1 else (batch, len(choices)))
        np.testing.assert_allclose(logits, policy.outputs(observations).numpy(), atol=1e-5)
        # by hand: the place of the largest of each group
        starts = np.cumsum((0, *choices))
        largest = [logits[:, first:end].argmax(axis=1) for first, end in itertools.pairwise(starts)]
        np.testing.assert_array_equal(action.reshape(batch, -1), np.stack(largest, axis=1))
        np.testing.assert_array_equal(
            action.reshape(batch, -1), policy.act(observations).numpy().astype(np.int64)
        )
        from_script = script(observations)
        np.testing.assert_array_equal(from_script[0].numpy(), action)
        torch.testing.assert_close(from_script[1], policy.outputs(observations), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_onnx_file_is_whole_valid_and_names_no_path_of_this_machine(tmp_path: Path) -> None:
    content = policy_files.onnx_model(saved(tmp_path, "elu", (3, 8, 2)))
    model = onnx.load_model_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    (observation,), (action,) = model.graph.input, model.graph.output
    shapes = [
        [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in (observation, action)
    ]
    assert shapes == [["batch", 3], ["batch", 2]]
    assert str(Path(policy_files.__file__).parents[1]).encode() not in content


def test_what_is_no_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy.safetensors").write_bytes(b"no")
    with pytest.raises(RunFolderError, match=r"policy\.safetensors"):
        policy_files.torchscript(tmp_path / "policy.safetensors")


def test_a_policy_that_normalises_by_nan_is_not_described(tmp_path: Path) -> None:
    tensors = policy_tensors((3, 8, 1))
    tensors["observation_mean"][1] = torch.nan
    save_policy(tmp_path / "policy.safetensors", tensors, {"activation": "elu"})
    with pytest.raises(RunFolderError, match="NaN or infinite statistics"):
        policy_files.statistics(tmp_path / "policy.safetensors")

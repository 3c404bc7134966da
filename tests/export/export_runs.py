"""Shared parts of the export tests: random policies, runs made without training, the Python files
of an export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from eureka_agent.archive.run_folder import Run
from eureka_agent.export.contents import Exported, text_files
from eureka_agent.export.folder import WrittenExport, policy_description, write_export
from eureka_agent.records import TaskDescription
from eureka_agent.search.summary import run_report
from eureka_agent.simulation.loading import describe, load_environment

MakeRun = Callable[..., Run]
ExportTexts = Callable[..., Path]
LoadModule = Callable[[Path, str], ModuleType]


def policy_tensors(
    sizes: tuple[int, ...], seed: int = 0, log_std: float = -0.5
) -> dict[str, Tensor]:
    """A policy with weights at random; `sizes`: observations, hidden layers, actions."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    tensors = {
        "observation_mean": normal(sizes[0]),
        "observation_deviation": normal(sizes[0]).abs() + 0.01,
        "log_std": log_std + 0.3 * normal(sizes[-1]),
    }
    for index in range(len(sizes) - 1):
        tensors[f"policy.{index}.weight"] = (
            normal(sizes[index], sizes[index + 1]) / sizes[index] ** 0.5
        )
        tensors[f"policy.{index}.bias"] = normal(1, sizes[index + 1])
    return tensors


def described(environment: str) -> TaskDescription:
    return describe(load_environment(environment))


def export_of(run: Run, folder: Path, attempt: str | None = None) -> WrittenExport:
    return write_export(run, run_report(run), attempt, folder)


def write_texts(run: Run, folder: Path) -> Path:
    """An export without the policies, which take seconds to make."""
    report = run_report(run)
    assert report.best is not None
    exported = Exported(report=report, attempt=report.best, score=None)
    folder.mkdir()
    description = report.description
    count = description.num_observations
    policy = policy_description(description, [0.5] * count, [2.0] * count, {})
    for name, text in text_files(exported, policy, onnx=True).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder

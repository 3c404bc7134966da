"""Searches whose rewards are learned: killed, resumed, told, exported with what they learned."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import CommandLine, wait_for
from safetensors.torch import load_file
from torch import Tensor

from eureka_agent.designer.source_tools import parameter_names

pytestmark = pytest.mark.slow
Arguments = Callable[..., tuple[str, ...]]
FLAGS = ("--no-baselines", "--no-video", "--iterations", "1")

PAID = """
import sys, gymnasium_wrapper, torch, vec_task
from reward import compute_reward
generator = torch.Generator().manual_seed(0)
names = sys.argv[1:]
assert [*vec_task.ARGUMENTS] == [*gymnasium_wrapper.ARGUMENTS] == names, vec_task.ARGUMENTS
shapes = {name: (5, 1) if name == "actions" else (5,) for name in names}
given = {name: torch.randn(*shape, generator=generator) for name, shape in shapes.items()}
print(compute_reward(**given)[0].tolist())
"""


def latent_pay(total: Tensor, given: Tensor, learned: dict[str, Tensor]) -> Tensor:
    scaled = given / learned["sizes"]
    hidden = torch.tanh(scaled @ learned["hidden"] + learned["bias"])
    weights, factors = learned["weights"], given.shape[1]
    return weights[1] + scaled @ weights[2 : 2 + factors] + hidden @ weights[2 + factors :]


def blend_pay(total: Tensor, given: Tensor, learned: dict[str, Tensor]) -> Tensor:
    paid = []
    for row, value in zip(given / learned["scales"], total, strict=True):
        nearest = min(range(8), key=lambda place: float((row - learned["centres"][place]).norm()))
        paid.append(learned["weights"][nearest] * value / learned["sizes"][1])
    return torch.stack(paid)


@pytest.mark.parametrize(
    ("kind", "says", "pay"),
    [
        ("latent", "What was paid was learned from", latent_pay),
        ("blend", "The fitness was paid step by step", blend_pay),
    ],
)
def test_a_killed_one_ends_as_an_unbroken_one_and_is_exported_with_what_it_learned(
    eureka: CommandLine,
    shared_eureka: CommandLine,
    small: Arguments,
    tmp_path: Path,
    kind: str,
    says: str,
    pay: Callable[..., Tensor],
) -> None:
    arguments = (*small(), *FLAGS, "--rewards", kind)
    unbroken = shared_eureka.json(*arguments)
    process = eureka.popen(*arguments, "--snapshot-interval", "0.1")
    folders = eureka.folder / "runs"

    def has_state() -> bool:
        return any(folders.glob("*/.snapshots/*.safetensors"))

    wait_for(has_state, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    folder = eureka.run_folder()
    eureka("resume", str(folder))
    assert eureka.found(folder) == shared_eureka.found(Path(unbroken["folder"]))

    page = eureka("show", str(folder), unbroken["best"]["id"])
    assert says in " ".join(page.split())

    eureka("export", str(folder), "--out", str(tmp_path / "export"))
    (tmp_path / "export" / "paid.py").write_text(PAID)
    namespace: dict[str, Any] = {}
    exec((folder / "best" / "reward.py").read_text(), namespace)
    names = parameter_names((folder / "best" / "reward.py").read_text())
    command = [sys.executable, "paid.py", *names]
    process = subprocess.Popen(
        command, cwd=tmp_path / "export", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    # by hand, from the numbers beside the policy
    generator = torch.Generator().manual_seed(0)
    shapes = {name: (5, 1) if name == "actions" else (5,) for name in names}
    values = {name: torch.randn(*shape, generator=generator) for name, shape in shapes.items()}
    total, terms = namespace["compute_reward"](**values)
    learned = {
        name.removeprefix("reward."): each
        for name, each in load_file(folder / "best" / "policy.safetensors").items()
        if name.startswith("reward.")
    }
    given = torch.stack([total, *terms.values()], dim=1)
    expected = pay(total, given, learned)
    assert torch.tensor(ast.literal_eval(output)).allclose(expected, atol=1e-5)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (
            ("--rewards", "latent", "--fitness", "judged", "--model", "openai/x"),
            "--fitness judged has none",
        ),
        (("--rewards", "shaped"), "shaped"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    eureka: CommandLine, small: Arguments, flags: tuple[str, ...], says: str
) -> None:
    assert says in " ".join(eureka(*small(), *FLAGS, *flags, status=2).split())

"""A search whose rewards are learned: killed, resumed, told, exported with what they learned."""

from __future__ import annotations

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

pytestmark = pytest.mark.slow
Arguments = Callable[..., tuple[str, ...]]
FLAGS = ("--rewards", "latent", "--no-baselines", "--no-video", "--iterations", "1")

PAID = """
import sys, torch
from reward import compute_reward
generator = torch.Generator().manual_seed(0)
names = sys.argv[1:]
shapes = {name: (5, 1) if name == "actions" else (5,) for name in names}
given = {name: torch.randn(*shape, generator=generator) for name, shape in shapes.items()}
print(compute_reward(**given)[0].tolist())
"""


def test_a_killed_one_ends_as_an_unbroken_one_and_is_exported_with_what_it_learned(
    eureka: CommandLine, shared_eureka: CommandLine, small: Arguments, tmp_path: Path
) -> None:
    unbroken = shared_eureka.json(*small(), *FLAGS)
    process = eureka.popen(*small(), *FLAGS, "--snapshot-interval", "0.1")
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
    assert "What was paid was learned from" in " ".join(page.split())

    eureka("export", str(folder), "--out", str(tmp_path / "export"))
    (tmp_path / "export" / "paid.py").write_text(PAID)
    source = (folder / "best" / "reward.py").read_text()
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    names = namespace["compute_reward"].__code__.co_varnames[
        : namespace["compute_reward"].__code__.co_argcount
    ]
    paid = subprocess.run(
        [sys.executable, "paid.py", *names], cwd=tmp_path / "export", capture_output=True, text=True
    )
    assert paid.returncode == 0, paid.stderr
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
    scaled = ((given - learned["mean"]) / learned["deviation"]).clamp(-10.0, 10.0)
    hidden = torch.tanh(scaled @ learned["hidden"] + learned["bias"])
    weights = learned["weights"]
    expected = weights[1] + scaled @ weights[2 : 2 + given.shape[1]]
    expected += hidden @ weights[2 + given.shape[1] :]
    assert torch.tensor(eval(paid.stdout)).allclose(expected, atol=1e-5)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--fitness", "judged", "--model", "openai/x"), "--fitness judged has none"),
        (("--rewards", "shaped"), "shaped"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(
    eureka: CommandLine, small: Arguments, flags: tuple[str, ...], says: str
) -> None:
    assert says in " ".join(eureka(*small(), *FLAGS, *flags, status=2).split())

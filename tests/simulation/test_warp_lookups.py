"""Lookups by name on mujoco_warp against `mujoco.batch.Batch`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from gripper import random_actions, read
from warp_needed import NEEDS_WARP

pytestmark = [pytest.mark.slow, NEEDS_WARP]


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_both_simulators_read_the_same(gripper: Callable[..., Any], device: str) -> None:
    batch = gripper(8)
    warp = gripper(8, device=device, simulator="warp")
    errors: dict[str, list[float]] = {}
    pressed = 0.0
    for step, actions in enumerate(random_actions(batch, 60)):
        for name, value in warp.physics.state().items():
            value.copy_(batch.physics.state()[name])
        batch.advance(actions)
        warp.advance(actions.to(device))
        if step == 30:
            batch.reset_rows(torch.tensor([1]))
            warp.reset_masked(torch.arange(8, device=device) == 1)
        for name, value in read(batch).items():
            error = (read(warp)[name].cpu().double() - value.double()).abs().max()
            errors.setdefault(name, []).append(float(error))
        pressed = max(pressed, float(batch.pads.force_w.abs().max()))
    # float32 in place of float64; the largest of these figures were 2e-7, 2e-7, 2e-6 and 5e-4 N
    for name, largest in {
        "position": 1e-5,
        "orientation": 1e-5,
        "velocity": 1e-4,
        "force": 1e-2,
    }.items():
        assert max(errors[name]) < largest, name
    assert pressed > 5.0
    # what just touches does so in one of the two
    assert sum(errors["touching"]) <= 2.0


@pytest.mark.gpu
def test_reads_and_writes_by_name_wait_for_no_gpu(gripper: Callable[..., Any]) -> None:
    environment = gripper(8, device="cuda")
    elbow, backwards = environment.joint("elbow"), environment.joint(["right_slide", "left_slide"])
    pushes = environment.actuator([".*_push"])
    actions, rows = torch.zeros(8, 3, device="cuda"), torch.arange(8, device="cuda")
    for _ in range(3):  # kernels are compiled in the first, graphs recorded in the second
        environment.advance(actions)
    torch.cuda.set_sync_debug_mode("error")
    try:
        elbow.write(rows, position=actions[:, 0], velocity=actions[:, 0])
        backwards.write(rows, position=actions[:, :2])
        environment.cube_root.write(rows, position_w=actions)
        pushes.control = backwards.velocity
        environment.advance(actions)
        read(environment)
    finally:
        torch.cuda.set_sync_debug_mode("default")

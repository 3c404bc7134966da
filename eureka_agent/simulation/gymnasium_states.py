"""Reading and writing the whole state of one of Gymnasium's own environments, where it is known."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy
import torch
from torch import Tensor

from eureka_agent.simulation import gymnasium_calls as calls
from eureka_agent.simulation.gymnasium_names import StatePlace

_PHYSICS, _GENERATOR = "gymnasium.physics", "gymnasium.generator"
_WORD = 64


def read_state(environment: gymnasium.Env, place: StatePlace) -> dict[str, Tensor]:
    """The state of physics and random numbers, as tensors of one size for all copies."""
    physics: Any = environment.unwrapped
    if place == "mujoco":
        values = _mujoco_state(physics)
    else:
        state = numpy.asarray(physics.state)
        # single precision, where an environment has it, is kept
        values = numpy.array([*state, state.dtype == numpy.float32], dtype=numpy.float64)
    return {_PHYSICS: torch.from_numpy(values), _GENERATOR: _generator_state(environment)}


def write_state(environment: gymnasium.Env, place: StatePlace, state: dict[str, Tensor]) -> None:
    """Put back what `read_state` gave, of this copy or another one."""
    calls.reset(environment, 0)  # a copy that was never reset refuses to be stepped
    physics: Any = environment.unwrapped
    values = state[_PHYSICS].numpy()
    if place == "mujoco":
        _set_mujoco_state(physics, values)
    else:
        physics.state = values[:-1].astype(numpy.float32 if values[-1] else numpy.float64)
    _set_generator_state(environment, state[_GENERATOR])


def _mujoco_state(physics: Any) -> numpy.ndarray:
    import mujoco

    whole = mujoco.mjtState.mjSTATE_INTEGRATION
    integrated = numpy.empty(mujoco.mj_stateSize(physics.model, whole))
    mujoco.mj_getState(physics.model, physics.data, integrated, whole)
    # a step reads these before it computes them, one physics step late
    poses = physics.data.xpos.reshape(-1), physics.data.xipos.reshape(-1)
    return numpy.concatenate([integrated, *poses])


def _set_mujoco_state(physics: Any, values: numpy.ndarray) -> None:
    import mujoco

    whole = mujoco.mjtState.mjSTATE_INTEGRATION
    size = mujoco.mj_stateSize(physics.model, whole)
    integrated = values[:size].copy()
    mujoco.mj_setState(physics.model, physics.data, integrated, whole)
    mujoco.mj_forward(physics.model, physics.data)  # for pictures; it changes the solver's start
    mujoco.mj_setState(physics.model, physics.data, integrated, whole)
    positions, centres = numpy.split(values[size:], 2)
    physics.data.xpos[:] = positions.reshape(-1, 3)
    physics.data.xipos[:] = centres.reshape(-1, 3)


def _generator_state(environment: gymnasium.Env) -> Tensor:
    """The state of its PCG64: two numbers of 128 bits in words of 64, and a buffered half word."""
    state: Any = environment.unwrapped.np_random.bit_generator.state
    words = [
        number >> shift & (2**_WORD - 1)
        for number in (state["state"]["state"], state["state"]["inc"])
        for shift in (0, _WORD)
    ]
    words += [state["has_uint32"], state["uinteger"]]
    return torch.from_numpy(numpy.array(words, dtype=numpy.uint64).view(numpy.int64))


def _set_generator_state(environment: gymnasium.Env, words: Tensor) -> None:
    low, high, low_inc, high_inc, buffered, half = words.numpy().view(numpy.uint64).tolist()
    generator = environment.unwrapped.np_random.bit_generator
    generator.state = {
        **generator.state,
        "state": {"state": low | high << _WORD, "inc": low_inc | high_inc << _WORD},
        "has_uint32": buffered,
        "uinteger": half,
    }

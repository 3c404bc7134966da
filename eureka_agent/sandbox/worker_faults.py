"""Errors for faults that workers report, bounded and printable."""

from __future__ import annotations

import shlex

from eureka_agent.boundary.bounds import LONGEST_FAULT, LONGEST_HINT
from eureka_agent.boundary.events import Fault
from eureka_agent.errors import EnvironmentFaultError, EurekaError, GpuLostError
from eureka_agent.invocation import command
from eureka_agent.text import plain_line, plain_text


def raised_by(
    fault: Fault, otherwise: type[EurekaError], environment: str, opening: bool = False
) -> EurekaError:
    """The error for a worker's fault: GpuLostError, EnvironmentFaultError where no reward is to
    blame, else `otherwise`. `environment`: its name for the user; `opening`: there is no reward
    yet."""
    if fault.gpu:
        hint = "`nvidia-smi` and `dmesg` tell why; the same command goes on where it was"
        return GpuLostError(plain_line(fault.message, LONGEST_FAULT), hint)
    if fault.environment:
        return _environment_fault(fault.message, fault.hint, environment, opening)
    return otherwise(fault.message.strip() or "the worker gave no reason", fault.hint)


def stuck(last_words: str, timeout_s: float, environment: str) -> EnvironmentFaultError | None:
    """The error for a worker that hangs in a call of the environment; else None."""
    _, found, stack = plain_text(last_words).rpartition("Timeout (")
    calls = [line.strip() for line in stack.splitlines() if line.startswith("  File ")]
    if not found or not calls:
        return None
    message = f"it gave no sign of life for {timeout_s:g} s and was killed, in {calls[0]}"
    hint = (
        "look for a call into a library that does not end; an environment that is only slow needs a"
        " larger --training-timeout"
    )
    return _environment_fault(message, hint, environment, opening=False)


def _environment_fault(
    message: str, hint: str, environment: str, opening: bool
) -> EnvironmentFaultError:
    whose = (
        "the environment fails before any reward is called"
        if opening
        else "the environment is at fault, no reward is"
    )
    check = command(shlex.join(["envs", "--check", environment]))
    return EnvironmentFaultError(
        f"{whose}: {plain_line(message, LONGEST_FAULT)}",
        f"{plain_line(hint, LONGEST_HINT)}; `{check}` looks for such faults; then start a new run",
    )

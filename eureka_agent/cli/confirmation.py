"""Question to the person whether a search takes a written fitness."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from eureka_agent.cli.terminal_lines import is_yes
from eureka_agent.errors import EurekaError
from eureka_agent.records import Verdict, WrittenFitness
from eureka_agent.search.written_fitness import FITNESS_SOURCE, Acceptance, Confirm

QUESTION = "Take this fitness for the run?"


class NoTerminalError(EurekaError):
    """A fitness to confirm without a terminal."""


def confirmation(
    yes: bool, output_format: str, paused: Callable[[], AbstractContextManager[object]]
) -> Confirm:
    """Function that asks for consent. `yes`: do not ask; `paused`: frees the terminal."""

    async def confirm(fitness: WrittenFitness, verdict: Verdict, kept: Path) -> Acceptance | None:
        from eureka_agent.report.attempt_page import render_findings
        from eureka_agent.report.sections import fitness_blocks
        from eureka_agent.report.terminal import CleanConsole, panel, render_block

        on_stderr = output_format == "json" or not sys.stdout.isatty()
        output = sys.stderr if on_stderr else sys.stdout
        if not yes and not (sys.stdin.isatty() and output.isatty()):
            raise NoTerminalError(
                f"{fitness.author} wrote a fitness, and there is no terminal to ask whether it is"
                " taken",
                f"read {str(kept / FITNESS_SOURCE)!r}, then give the same command with --yes: it is"
                " not written again",
            )
        with paused():
            console = CleanConsole(stderr=on_stderr)
            console.print(
                *(part for each in fitness_blocks(fitness) for part in render_block(each))
            )
            if verdict.findings:
                title = "what the critic remarks (it calls it a reward)"
                console.print(panel(render_findings(verdict), title, "yellow"))
            if yes:
                return "accepted by --yes at the start"
            accepted = await is_yes(QUESTION, on_stderr=on_stderr)
            return "accepted by a person at the start" if accepted else None

    return confirm

"""A prompt as it would be sent to the designers of a stored run's next generation, and its size.

    python benchmarks/prompt.py RUN [--operator improve] [--iteration 3] [--all]

Asks no model and changes nothing. Tokens are characters / 4. `--all` counts a whole generation's
requests; the text that is equal in all of them, and may be cached, is counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from eureka_agent.archive.run_folder import find_run, open_run
from eureka_agent.designer.interface import DesignRequest
from eureka_agent.designer.llm_designer import opening
from eureka_agent.search.briefing import Briefing
from eureka_agent.search.strategies import strategy_of

CHARACTERS_PER_TOKEN = 4


def requests_of(name: str, iteration: int | None = None) -> list[DesignRequest]:
    """The requests of a generation, counted from 1, as they were planned or would be planned now.
    None: the generation after the last."""
    run = open_run(find_run(name), reading=True)
    try:
        if iteration is None:
            iteration = (
                max((attempt.iteration for attempt in run.archive.attempts()), default=-1) + 2
            )
        # an offline search may draw fresh rewards alone; a model's goes on from the best
        strategy = strategy_of(run.settings, refined=True)
        briefing = Briefing(run, strategy, lambda entry: None)
        plans = briefing.plan(iteration - 1, range(run.settings.samples))
        return [asyncio.run(briefing.request(plan)) for plan in plans]
    finally:
        run.archive.close()


def tokens(text: str) -> int:
    """Approximate number of tokens in most models' vocabularies."""
    return round(len(text) / CHARACTERS_PER_TOKEN)


def main() -> int:
    """Print a prompt, or the sizes of a generation's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", metavar="RUN")
    parser.add_argument("--operator", default="improve")
    parser.add_argument(
        "--iteration",
        type=int,
        help="generation, counted from 1; default: the one after the run's last",
    )
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    found = requests_of(arguments.run, arguments.iteration)
    if arguments.all:
        for request in found:
            system, order = opening(request)
            print(
                f"{request.operator.value:18} {tokens(system.content):6,} shared,"
                f" {tokens(order.content):6,} of its own"
            )
        return 0
    chosen = next(
        (request for request in found if request.operator.value == arguments.operator), None
    )
    if chosen is None:
        print(
            "error: this generation asks for"
            f" {', '.join(dict.fromkeys(each.operator.value for each in found))}",
            file=sys.stderr,
        )
        return 2
    order = opening(chosen)[1].content
    print(order)
    print(f"{tokens(order):,} tokens", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

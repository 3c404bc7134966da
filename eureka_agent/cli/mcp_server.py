"""`eureka mcp`: runs, their tools and trainings, for coding agents."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from eureka_agent.cli.command import Command, Number, UsageError
from eureka_agent.cli.options import given_settings, settings_options
from eureka_agent.errors import EurekaError
from eureka_agent.invocation import install_extra
from eureka_agent.settings import MOST_ENV_STEPS


@click.command(cls=Command)
@click.option(
    "--budget",
    type=Number(int, 1, MOST_ENV_STEPS),
    default="20M",
    show_default=True,
    help="Env steps that all searches and proposals of this server may train together.",
)
@settings_options(["model", "base_url", "price", "max_cost"])
@click.option(
    "--env",
    "environments",
    multiple=True,
    metavar="PATH",
    help="An environment of your own, or gymnasium:<id>, beside the built-in ones; repeatable.",
)
def mcp(budget: int, environments: tuple[str, ...], **flags: Any) -> None:
    """Serve runs to a coding agent, over the Model Context Protocol on standard input and output.

    The agent asks about runs, tries rewards, and trains within the budget. A model and a limit on
    its cost are those of the searches that the agent starts, all together.

    \b
    eureka mcp
    eureka mcp --budget 5M --env path/to/my_env
    """
    if find_spec("mcp") is None:
        what = "the Model Context Protocol needs a package that is not installed"
        raise EurekaError(what, f"install it: {install_extra('mcp')}")
    from eureka_agent.agents.budget import AgentBudget
    from eureka_agent.agents.server import serve
    from eureka_agent.agents.service import AgentService
    from eureka_agent.cli.questions import trust_to_evaluate
    from eureka_agent.simulation.catalogue import list_environments

    settings = given_settings(None, flags)
    limit = Decimal(settings.pop("max_cost")) if "max_cost" in settings else None
    built_in = [each.name for each in list_environments()]
    own = _by_name(environments, built_in)
    trust = partial(trust_to_evaluate, trust=False)
    service = AgentService(AgentBudget(budget, limit), settings, built_in, own, trust)
    asyncio.run(serve(service))


def _by_name(environments: Iterable[str], taken: Collection[str]) -> dict[str, str]:
    """Environments by the names that an agent gives them. Raises EnvironmentLoadError, and
    UsageError for a name that is taken."""
    from eureka_agent.simulation.catalogue import find_folder

    found: dict[str, str] = {}
    for each in environments:
        is_id = ":" in each  # of gymnasium, or a class of a module
        place = each if is_id else str(find_folder(each))
        name = each if is_id else Path(place).name
        if name in found or name in taken:
            raise UsageError(f"there are two environments {name!r}", "rename the folder of one")
        found[name] = place
    return found

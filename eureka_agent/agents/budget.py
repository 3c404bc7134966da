"""Env steps and dollars that a server's searches and proposals may take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from eureka_agent.agents.children import Child
from eureka_agent.archive.run_folder import open_run
from eureka_agent.errors import RunFolderError
from eureka_agent.journal.state import RunState
from eureka_agent.records import RunStatus
from eureka_agent.report.follow import Follower
from eureka_agent.report.ledger import Ledger
from eureka_agent.report.progress import trainings_done
from eureka_agent.settings import SearchSettings
from eureka_agent.tools.bench import ToolError

HINT = "take less; only who started this server can raise its limits"


def state_of(folder: Path) -> RunState:
    """State of a run, with what is under way. Raises RunFolderError."""
    follower = Follower(folder, lambda entry: None)
    follower.poll()
    return follower.state


@dataclass(eq=False)
class Begun:
    """A run that this server works on, or worked on."""

    reserved: int
    """Env steps that it may take, at most."""
    folder: Path | None = None
    child: Child | None = None
    before: int = 0
    """Trainings before the first process of this server."""
    max_cost: Decimal | None = None
    """Limit of all requests of the run to models, in dollars; None where none are made."""

    @property
    def is_running(self) -> bool:
        return self.child is None or self.child.is_running

    def env_steps(self) -> int:
        """Env steps that count: all that are reserved until the run has finished, since a training
        that was stopped may have taken any part of its own."""
        if self.is_running or self.folder is None:
            return self.reserved
        try:
            state = state_of(self.folder)
        except RunFolderError:  # nothing came of it, so it was removed
            return 0
        if state.status is not RunStatus.FINISHED or state.settings is None:
            return self.reserved
        return (trainings_done(state) - self.before) * state.settings.steps_of_a_training

    def money(self) -> Decimal:
        """Dollars that count: the whole limit while it may be spent."""
        if self.max_cost is None or self.is_running or self.folder is None:
            return self.max_cost or Decimal()
        try:
            with closing(open_run(self.folder, reading=True).archive) as archive:
                spent = Ledger(tuple(archive.account())).total.money
        except RunFolderError:
            return self.max_cost
        return self.max_cost if spent is None else spent


@dataclass
class AgentBudget:
    """The limits of a server, and what counts against them."""

    env_steps: int
    max_cost: Decimal | None = None
    """Dollars for models; None: no limit."""
    _begun: list[Begun] = field(default_factory=list, init=False)

    def of(self, name: str) -> Begun | None:
        """The run of this name, if this server worked on it."""
        named = (each for each in self._begun if each.folder and each.folder.name == name)
        return next(named, None)

    @property
    def left(self) -> int:
        """Env steps that nothing is reserved for."""
        return self.env_steps - sum(each.env_steps() for each in self._begun)

    def money_left(self) -> Decimal | None:
        """Dollars that nothing is reserved for; None without a limit. Raises ToolError for none."""
        if self.max_cost is None:
            return None
        left = self.max_cost - sum((each.money() for each in self._begun), Decimal())
        if left <= 0:
            what = f"nothing is left of this server's --max-cost {self.max_cost}, or it is in use"
            raise ToolError(what, HINT)
        return left

    def check_models(self, name: str, settings: SearchSettings) -> None:
        """Refuse further work on a run whose models this server's limits do not cover. Raises
        ToolError."""
        named = {*settings.model, settings.reviewer, settings.analyst, settings.judge}
        models = ", ".join(sorted(named - {"offline", "off", "auto"}))
        if not models:
            return
        if (begun := self.of(name)) is None:
            what = f"the run {name!r} asks {models}, and was not begun by this server"
            raise ToolError(what, "begin one with `search`, with 0 iterations for the baselines")
        if begun.max_cost is not None:
            left = (self.money_left() or Decimal()) + begun.money()
            if left < begun.max_cost:
                what = f"the run {name!r} may spend ${begun.max_cost} in all, and ${left} are left"
                raise ToolError(what, HINT)

    @contextmanager
    def reserved(self, env_steps: int, begun: Begun | None = None) -> Iterator[Begun]:
        """Reserve env steps for a run that begins in the block, or goes on there. Where the block
        fails nothing is reserved; where it is cancelled the command is stopped. Raises ToolError
        for more than are left."""
        if env_steps > (left := self.left):
            what = (
                f"this may train {env_steps:,} env steps, and {max(0, left):,} of this server's"
                f" {self.env_steps:,} are left"
            )
            raise ToolError(what, HINT)
        chosen = begun or Begun(0)
        before = chosen.reserved
        chosen.reserved = env_steps + (chosen.env_steps() if begun else 0)
        if chosen not in self._begun:
            self._begun.append(chosen)
        try:
            yield chosen
        except asyncio.CancelledError:  # it may have trained a part
            if chosen.child is not None:
                chosen.child.stop()
            raise
        except Exception:
            chosen.reserved = before
            if begun is None:
                self._begun.remove(chosen)
            raise

"""Archive of a run that another process may work on: each look reads only what is new."""

from __future__ import annotations

from pathlib import Path

from eureka_agent.archive.database import ENTRY_COLUMNS, Archive, listed
from eureka_agent.journal.progress import OF_RUN
from eureka_agent.journal.state import RunState
from eureka_agent.records import Attempt, Cost, Message


class GrowingArchive(Archive):
    """A read-only archive that keeps attempts in brief, sums and facts between two looks."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, reading=True)
        self._run_facts, self._facts_number = RunState(), 0
        self._briefs: dict[str, Attempt] = {}
        self._briefs_number = 0
        self._accounts: dict[str, Message] = {}
        self._accounts_row = 0

    @property
    def facts(self) -> RunState:
        """Current state without the attempts."""
        rows = self._read(
            f"SELECT {ENTRY_COLUMNS} FROM journal WHERE number > ?"
            f" AND kind IN ({listed(OF_RUN)}) ORDER BY number",
            (self._facts_number,),
        )
        for recorded in self._recorded(rows):
            self._run_facts.apply(recorded)
            self._facts_number = recorded.number
        self._run_facts.seconds = max(self._run_facts.seconds, self._last()[1])
        return self._run_facts

    def attempts_in_brief(self) -> tuple[Attempt, ...]:
        """All attempts in order, of which only those with new entries are read."""
        number = self._last()[0]
        rows = self._read(
            "SELECT brief FROM attempts WHERE id IN"
            " (SELECT attempt FROM journal WHERE number > ? AND attempt != '')",
            (self._briefs_number,),
        )
        for (brief,) in rows:
            attempt = self._parsed(Attempt, brief)
            self._briefs[attempt.id] = attempt
        self._briefs_number = number
        chosen = self._briefs.values()
        return tuple(sorted(chosen, key=lambda each: (each.iteration, each.sample, each.revision)))

    def account(self) -> tuple[Message, ...]:
        """All messages without their text."""
        rows = self._read(
            "SELECT rowid, key, role, model, attempt, cost FROM messages WHERE rowid > ?"
            " ORDER BY rowid",
            (self._accounts_row,),
        )
        for row, key, role, model, attempt, cost in rows:
            self._accounts[str(key)] = Message(
                role=str(role),
                model=str(model),
                attempt=str(attempt),
                request="",
                reply="",
                cost=self._parsed(Cost, cost),
            )
            self._accounts_row = row
        return tuple(self._accounts.values())

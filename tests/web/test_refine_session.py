"""A refinement's session, between a person's pages and the search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from eureka_agent.errors import EurekaError
from eureka_agent.search.table import Table
from eureka_agent.web.refine.session import RefineSession


class SlowTable:
    """A table whose clips take for ever, and whose end a page does not wait for."""

    def __init__(self, session: RefineSession) -> None:
        self.session = session
        self.begun: list[tuple[str, ...]] = []
        self.refusals: list[EurekaError] = []

    async def clips(self, names: Sequence[str]) -> dict[str, Path]:
        """See `Table.clips`. While it is stopped, a page asks for clips of others."""
        self.begun.append(tuple(names))
        try:
            await asyncio.Event().wait()
        finally:
            try:
                self.session.clips(["1-02"])
            except EurekaError as error:
                self.refusals.append(error)
        raise AssertionError


async def test_a_page_begins_no_clip_once_the_person_has_decided(tmp_path: Path) -> None:
    session = RefineSession(tmp_path / "none", "none")
    await session.close()
    table = SlowTable(session)
    asked = asyncio.create_task(session.decide(cast(Table, cast(Any, table))))
    await asyncio.sleep(0)
    assert session.clips(["1-01"]) is None
    await asyncio.sleep(0)
    session.decided("another")
    assert await asked == "another"
    await asyncio.sleep(0)
    assert table.begun == [("1-01",)]
    assert [str(error.message) for error in table.refusals] == [
        "nothing can be said now: the session is training"
    ]

"""A refinement's session, between a person's pages and the search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from eureka_agent.errors import EurekaError
from eureka_agent.feedback_records import Decision, Wish
from eureka_agent.journal.entries import FeedbackGiven
from eureka_agent.web.refine.session import RefineSession


class SlowClips:
    """Clips that take for ever, and whose end a page does not wait for."""

    def __init__(self, session: RefineSession) -> None:
        self.session = session
        self.begun: list[tuple[str, ...]] = []
        self.refusals: list[EurekaError] = []

    async def of(self, names: Sequence[str]) -> dict[str, Path]:
        """See `Clips.of`. While it is stopped, a page asks for clips of others."""
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
    clips = SlowClips(session)
    refinement: Any = SimpleNamespace(clips=clips)
    asked = asyncio.create_task(session.ask(refinement))
    await asyncio.sleep(0)
    assert session.clips(["1-01"]) is None
    session._observe(FeedbackGiven(who="ada", feedback=Wish(wants="more")))
    await asyncio.sleep(0)
    assert not asked.done()
    session._observe(FeedbackGiven(who="ada", feedback=Decision(then="another")))
    await asked
    await asyncio.sleep(0)
    assert clips.begun == [("1-01",)]
    assert [str(error.message) for error in clips.refusals] == [
        "nothing can be said now: the session is training"
    ]

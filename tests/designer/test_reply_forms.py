"""The answer in each form of replies: a draft that the model has discarded is never taken for it."""

from __future__ import annotations

import pytest
from reply_forms import FORMS, GOOD, Form

from eureka_agent.designer.reply import parse_reply


def _lines(source: str) -> list[str]:
    return [line.rstrip() for line in source.splitlines() if line.strip()]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_the_answer_is_found_or_nothing(form: Form) -> None:
    reply = parse_reply(form.text, cut_off=form.cut_off)
    allowed = [] if form.expected == "none" else [_lines(form.source or GOOD)]
    allowed += [_lines(form.broken)] if form.broken else []
    allowed += [] if form.expected == "good" else [[]]
    assert _lines(reply.source) in allowed
    assert bool(reply.source) != bool(reply.problem)

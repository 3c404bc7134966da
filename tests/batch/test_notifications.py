"""Notifications over real HTTP, and no address in any error."""

from __future__ import annotations

from typing import Any

import pytest

from eureka_agent.batch.unattended import notifier, notify
from eureka_agent.errors import SettingsError


async def test_a_notification_arrives_or_what_went_wrong_is_said_without_the_address(
    inbox: tuple[str, list[dict[str, Any]]],
) -> None:
    address, received = inbox
    assert await notify(notifier({"EUREKA_NOTIFY": address}), "night: ended", "9 failed") == ""
    assert [(each["title"], each["message"]) for each in received] == [("night: ended", "9 failed")]
    refusing = notifier({"EUREKA_NOTIFY": f"{address}/refuse-secret"})
    fault = await notify(refusing, "night: ended", "")
    assert fault == "the notification 'night: ended' did not arrive everywhere"
    assert await notify(None, "night: ended", "") == ""


def test_an_unknown_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError, match="address 1 in EUREKA_NOTIFY is none") as caught:
        notifier({"EUREKA_NOTIFY": "hunter2:/secret"})
    assert "hunter2" not in str(caught.value)
    assert notifier({}) is None

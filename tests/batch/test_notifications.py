"""Notifications over real HTTP, and no address in any error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eureka_agent.batch.unattended import notifier, notify
from eureka_agent.errors import SettingsError


async def test_a_notification_arrives_or_what_went_wrong_is_said_without_the_address(
    inbox: tuple[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    address, received = inbox
    assert await notify(notifier({"EUREKA_NOTIFY": address}), "night: ended", "9 failed") == ""
    assert [(each["title"], each["message"]) for each in received] == [("night: ended", "9 failed")]
    file = tmp_path / "addresses"
    file.write_text(f"{address}/refuse-secret\n")
    fault = await notify(notifier({"EUREKA_NOTIFY_FILE": str(file)}), "night: ended", "")
    assert fault == "the notification 'night: ended' did not arrive everywhere"
    assert await notify(None, "night: ended", "") == ""


def test_an_unknown_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="address 1 in EUREKA_NOTIFY is none") as caught:
        notifier({"EUREKA_NOTIFY": "hunter2:/secret"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(SettingsError, match="there is no such file"):
        notifier({"EUREKA_NOTIFY_FILE": str(tmp_path / "none")})
    assert notifier({}) is None

"""The documentation's text on each code that a verdict may hold."""

from __future__ import annotations

import re

from eureka_agent.resources import resource_folder

CODES = dict(
    re.findall(
        r"^\| ([A-Z]\d{3}) \| (.+) \|$",
        (resource_folder("envs").parent / "docs" / "reward-contract.md").read_text(),
        re.MULTILINE,
    )
)

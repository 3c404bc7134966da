"""A systemd user unit that goes on with a batch after a reboot."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from eureka_agent.batch.notifications import FILE_VARIABLE

_UNIT = """\
# {name}
#
# Save this as ~/.config/systemd/user/{name}, then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now {name}
#   loginctl enable-linger            # so that it also runs while you are logged out
# Keys come from the file ~/.config/eureka/keys, a line NAME=value each (chmod 600).

[Unit]
Description=Reward searches of the batch {batch}
StartLimitIntervalSec=1h
StartLimitBurst=30

[Service]
Type=exec
WorkingDirectory={working}
EnvironmentFile=-{keys}
{environment}ExecStart={command}
# 0: all searches have ended; 1: some failed, and starting again would not help;
# 2 may pass, such as a Docker engine that is not up yet: half an hour of it is enough
SuccessExitStatus=0 1
Restart=on-failure
RestartPreventExitStatus=1
RestartSec=60
KillSignal=SIGINT
KillMode=mixed
TimeoutStopSec=180

[Install]
WantedBy=default.target
"""


def unit(arguments: list[str], folder: Path) -> str:
    """The unit's text, with comments that say where it goes. `arguments`: those of `eureka`."""
    words = [sys.executable, "-m", "eureka_agent.cli.main", *arguments]
    passed = {
        name: os.environ[name]
        for name in ("EUREKA_RUNS", "EUREKA_SANDBOX", FILE_VARIABLE)
        if name in os.environ
    }
    lines = [f"Environment={_quoted(f'{name}={value}')}\n" for name, value in passed.items()]
    return _UNIT.format(
        name=f"eureka-{folder.name}.service",
        batch=folder.name,
        keys="%h/.config/eureka/keys",
        working=_escaped(str(Path.cwd())),
        environment="".join(lines),
        command=" ".join(map(_quoted, words)),
    )


def _escaped(text: str) -> str:
    """Text in which systemd replaces nothing."""
    return text.replace("%", "%%").replace("$", "$$")


def _quoted(word: str) -> str:
    escaped = _escaped(word)
    return escaped if shlex.quote(word) == word else f'"{escaped}"'

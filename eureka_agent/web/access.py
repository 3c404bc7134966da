"""Access to the page: a token in the address that the program prints, or a password."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from eureka_agent.archive.safe_files import read_plain
from eureka_agent.errors import EurekaError, SettingsError, system_reason

PASSWORD_VARIABLE = "EUREKA_UI_PASSWORD"
FEWEST_CHARACTERS = 8
MOST_PASSWORD_BYTES = 1024


def is_loopback(address: str) -> bool:
    """True for an IP address that only this machine reaches."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def read_password(file: Path | None) -> str:
    """Password from a file's first line or from `PASSWORD_VARIABLE`; empty without one. Raises
    SettingsError for a short one and for an unreadable file."""
    place, password = PASSWORD_VARIABLE, os.environ.get(PASSWORD_VARIABLE, "")
    if file is not None:
        place = f"the file {str(file)!r}"
        try:
            content = read_plain(file, MOST_PASSWORD_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = system_reason(error) if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(
                f"cannot read the password in {place}: {reason}",
                "name a file whose first line is the password",
            ) from None
        password = content.partition("\n")[0].rstrip("\r")
    if (file is not None or password) and len(password) < FEWEST_CHARACTERS:
        raise SettingsError(
            f"the password in {place} has {len(password)} characters, expected at least"
            f" {FEWEST_CHARACTERS}",
            "choose a longer one",
        )
    return password


def check_reach(host: str, address: str, password: str) -> None:
    """Raises EurekaError where other machines could reach the page without a password."""
    if password or is_loopback(address):
        return
    raise EurekaError(
        f"--host {host} lets other machines reach the page, and there is no password",
        f"set {PASSWORD_VARIABLE}, or name a file with --password-file; or leave --host out and"
        " forward the port with ssh -L",
    )


@dataclass(frozen=True)
class Access:
    """Secrets and names of one server."""

    port: int
    host: str
    """As the person gave it."""
    beyond_loopback: bool = False
    password: str = ""
    """Empty: the token in the address lets a browser in."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    """Value of the cookie of a browser that was let in."""
    _tickets: set[str] = field(default_factory=set)
    """Tokens that let one browser in."""

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers keep one jar for all ports of a host."""
        return f"eureka_{self.port}"

    @property
    def address(self) -> str:
        """Address to open, with the token if there is one."""
        return self._with_token(self.token)

    def address_for_once(self) -> str:
        """Address whose token lets one browser in: all users of a machine can read the arguments of
        the program that opens it."""
        ticket = secrets.token_urlsafe(24)
        self._tickets.add(ticket)
        return self._with_token(ticket)

    def _with_token(self, token: str) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        query = "" if self.password else f"?token={token}"
        return f"http://{host}:{self.port}/{query}"

    def hosts(self, arrived_at: str) -> set[str]:
        """Host headers that name this server. `arrived_at`: local IP address of the connection."""
        names = {"localhost", "127.0.0.1", "[::1]"}
        if self.beyond_loopback:
            own = f"[{arrived_at}]" if ":" in arrived_at else arrived_at
            names |= {own, self.host.lower(), socket.gethostname().lower()}
        return {f"{name}:{self.port}" for name in names}

    def takes_token(self, text: str) -> bool:
        """True for this server's token, and once for each that lets one browser in."""
        ticket = next((each for each in self._tickets if _equal(text, each)), None)
        self._tickets.discard(ticket or "")
        return not self.password and (ticket is not None or _equal(text, self.token))

    def is_password(self, text: str) -> bool:
        """True for this server's password."""
        return bool(self.password) and _equal(text, self.password)

    def is_session(self, text: str) -> bool:
        """True for the cookie of a browser that was let in."""
        return _equal(text, self.session)


def _equal(one: str, other: str) -> bool:
    """Comparison in a time that does not tell where two texts differ."""
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))

"""`eureka install`: a link to this program on a shell's PATH."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from eureka_agent.cli.command import Command
from eureka_agent.errors import EurekaError, system_reason
from eureka_agent.invocation import checkout


class InstallError(EurekaError):
    """A link that cannot be made or removed."""


@click.command(cls=Command)
@click.option("--remove", is_flag=True, help="Take the link away again.")
def install(remove: bool) -> None:
    """Put `eureka` on your PATH: a link in ~/.local/bin that leads to this program. Nothing else is
    written.

    \b
    eureka install
    eureka install --remove
    """
    link = Path(os.path.expanduser("~")) / ".local" / "bin" / "eureka"
    target = own_program()
    there = os.path.lexists(link)
    if there and link.resolve() != target.resolve():  # a broken link is not ours, either
        raise InstallError(
            f"{str(link)!r} is there already and does not lead to this program",
            f"look at it: ls -l {shlex.quote(str(link))}; if it can go, remove it and give the same"
            " command again",
        )
    try:
        if remove:
            if there:
                link.unlink()
        elif not there:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
    except OSError as error:
        raise InstallError(
            f"cannot write {str(link)!r}: {system_reason(error)}", "mend the folder's permissions"
        ) from None
    if remove:
        click.echo(f"removed {link}" if there else f"there is no {link}")
        return
    click.echo(f"{link} leads to {target}")
    click.echo(_path_advice(link))


def own_program() -> Path:
    """The checkout's launcher, else the program beside this Python. Raises InstallError."""
    target = (checkout() or Path(sys.prefix) / "bin") / "eureka"
    if not target.is_file():
        fault = f"there is no program {str(target)!r} to link to"
        raise InstallError(fault, "install the package: pip install .")
    return target


def _path_advice(link: Path) -> str:
    """Advice on how to call the program, by the shell's PATH."""
    found = shutil.which("eureka")
    if found is not None and Path(found).resolve() == link.resolve():
        return f"from any folder: {link.name} doctor"
    folders = filter(None, os.environ.get("PATH", "").split(os.pathsep))
    if os.path.realpath(link.parent) in map(os.path.realpath, folders):
        return f"your shell finds another one first, {found}; call this one as {link}"
    missing = f"{link.parent} is not on your PATH; put it there"
    shell = Path(os.environ.get("SHELL", "")).name
    if shell == "fish":
        return f"{missing}: fish_add_path {shlex.quote(str(link.parent))}"
    profile = "~/.zshrc" if shell == "zsh" else "~/.bashrc"
    line = 'export PATH="$HOME/.local/bin:$PATH"'
    return f"{missing}, for new shells too: echo {shlex.quote(line)} >> {profile} && {line}"

"""`eureka install` puts a link where a shell finds it, and touches nothing of somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eureka_agent.cli.install import own_program


@pytest.fixture
def link(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".local" / "bin" / "eureka"


def install(
    link: Path, *arguments: str, path: str = "", shell: str = "/bin/bash"
) -> subprocess.CompletedProcess[str]:
    home = str(link.parents[2])
    variables = {
        **os.environ,
        "HOME": home,
        "SHELL": shell,
        "PATH": os.pathsep.join(filter(None, (path, "/usr/bin", "/bin"))),
    }
    command = [sys.executable, "-m", "eureka_agent.cli.main", "install", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)


def test_the_link_is_made_once_leads_to_this_program_and_goes_again(link: Path) -> None:
    for _ in range(2):
        result = install(link, path=str(link.parent))
        assert result.returncode == 0, result.stderr
        assert result.stdout == f"{link} leads to {own_program()}\nfrom any folder: eureka doctor\n"
        assert link.resolve() == own_program().resolve()
    assert subprocess.run(
        [link, "--version"], capture_output=True, text=True, timeout=60
    ).stdout.startswith("eureka ")
    assert install(link, "--remove").stdout == f"removed {link}\n"
    assert not os.path.lexists(link)
    assert install(link, "--remove").stdout == f"there is no {link}\n"


@pytest.mark.parametrize("arguments", [(), ("--remove",)])
@pytest.mark.parametrize("kind", ["file", "link", "dead link"])
def test_what_is_somebody_else_s_stays(link: Path, arguments: tuple[str, ...], kind: str) -> None:
    link.parent.mkdir(parents=True)
    if kind == "file":
        link.write_text("theirs")
    else:
        link.symlink_to("/bin/true" if kind == "link" else "/nowhere/eureka")
    before = os.lstat(link).st_ino
    result = install(link, *arguments)
    assert result.returncode == 2
    assert (
        f"error: {str(link)!r} is there already and does not lead to this program\n"
        in result.stderr
    )
    assert os.lstat(link).st_ino == before


@pytest.mark.parametrize(
    ("shell", "advice"),
    [
        ("/bin/bash", """echo 'export PATH="$HOME/.local/bin:$PATH"' >> ~/.bashrc"""),
        ("/bin/zsh", """echo 'export PATH="$HOME/.local/bin:$PATH"' >> ~/.zshrc"""),
        ("/usr/bin/fish", "fish_add_path "),
    ],
)
def test_a_folder_that_is_not_on_the_path_is_said_with_how_to_put_it_there(
    link: Path, shell: str, advice: str
) -> None:
    output = install(link, shell=shell).stdout
    assert f"{link.parent} is not on your PATH" in output
    assert advice in output


def test_another_program_that_the_shell_finds_first_is_named(link: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "eureka"
    other.parent.mkdir()
    other.touch(mode=0o755)
    output = install(link, path=f"{other.parent}:{link.parent}").stdout
    assert f"your shell finds another one first, {other}" in output

from __future__ import annotations

from pathlib import Path

import pytest

from eureka_agent.cli.critique import read_reward_file
from eureka_agent.errors import EurekaError


def test_a_reward_is_read_as_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "reward.py"
    path.write_bytes("# größer ist besser\n".encode())
    assert read_reward_file(path) == "# größer ist besser\n"
    path.write_bytes(b"\xef\xbb\xbfx = 1\n")  # an editor's mark of UTF-8, which Python skips
    assert read_reward_file(path) == "x = 1\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no such file"),
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"# gr\xf6\xdfer", "byte 4"),
    ],
)
def test_a_file_without_a_reward_says_why(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    path = tmp_path / "reward.py"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EurekaError, match=reason) as caught:
        read_reward_file(path)
    assert repr(str(path)) in caught.value.message
    assert "name a Python file" in caught.value.hint


def test_a_folder_is_no_reward(tmp_path: Path) -> None:
    with pytest.raises(EurekaError, match="it is a folder, expected a file"):
        read_reward_file(tmp_path)

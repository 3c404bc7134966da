from __future__ import annotations

from pathlib import Path

from eureka_agent.archive.cache import RecordCache
from eureka_agent.base_record import Record


class Size(Record):
    width: int


def test_a_record_is_found_by_its_whole_key(tmp_path: Path) -> None:
    cache = RecordCache(tmp_path, "sizes")
    cache.put({"name": "box", "parts": [1, 2]}, Size(width=3))
    assert cache.find({"parts": [1, 2], "name": "box"}, Size) == Size(width=3)
    assert cache.find({"name": "box", "parts": [2, 1]}, Size) is None


def test_a_damaged_record_is_none_at_all(tmp_path: Path) -> None:
    cache = RecordCache(tmp_path, "sizes")
    cache.put({"name": "box"}, Size(width=3))
    (path,) = tmp_path.rglob("*.json")
    for content in (b'{"width": 3', b'{"width": 3, "depth": 1}', b"\xff"):
        path.write_bytes(content)
        assert cache.find({"name": "box"}, Size) is None

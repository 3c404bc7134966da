"""The end of a worker's standard error, and a limit on its length."""

from __future__ import annotations

KEPT_BYTES = 4096
FLOOD_BYTES = 64 << 20
"""Most bytes of standard error: a worker that writes more has a loop, and keeps the driver busy."""


class LastWords:
    """Keeps the last `KEPT_BYTES` of a growing text."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._written = 0

    @property
    def flooded(self) -> bool:
        """True after more than `FLOOD_BYTES`: the reader should end the worker."""
        return self._written > FLOOD_BYTES

    def add(self, data: bytes) -> None:
        """Append data."""
        self._written += len(data)
        self._kept += data
        del self._kept[:-KEPT_BYTES]

    def text(self) -> str:
        """The kept end; not safe for a terminal (`plain_text`)."""
        words = [self._kept.decode(errors="replace").strip()]
        if self.flooded:
            limit = f"{FLOOD_BYTES >> 20} MiB"
            words.append(f"it wrote more than {limit} to standard error and was killed")
        return "\n".join(filter(None, words))

"""What a worker wrote to standard error: its end, and whether it was far too much."""

from __future__ import annotations

KEPT_BYTES = 4096
FLOOD_BYTES = 64 << 20
"""A worker that writes more than this has a loop in it, and the driver is busy with reading."""


class LastWords:
    """Grows by pieces, and keeps the last `KEPT_BYTES`."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._written = 0

    @property
    def flooded(self) -> bool:
        """Whether it wrote more than `FLOOD_BYTES`: whoever listens is to end it."""
        return self._written > FLOOD_BYTES

    def add(self, data: bytes) -> None:
        """What came next."""
        self._written += len(data)
        self._kept += data
        del self._kept[:-KEPT_BYTES]

    def text(self) -> str:
        """The end of it; of no use as a terminal's input (`plain_text`)."""
        words = [self._kept.decode(errors="replace").strip()]
        if self.flooded:
            words.append(
                f"it wrote more than {FLOOD_BYTES >> 20} MiB to standard error and was killed"
            )
        return "\n".join(filter(None, words))

"""The model of the soak test: it numbers its replies, and fails as it is told to."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from batch_server import BatchServer
from model_server import NO_JSON, Answer, Asked, HttpFailure, Reply

PROMPT_TOKENS, REPLY_TOKENS = 120, 30
DOLLARS = 10
"""Price of a million tokens."""


@dataclass
class Counts:
    """What the server did."""

    answered: dict[int, float] = field(default_factory=dict)
    """Times of good replies by their numbers, by `time.monotonic`."""
    failed: int = 0
    garbled: int = 0


class SoakServer(BatchServer):
    """Writes a reward for the cart-pole into every reply."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.counts = Counts()
        self.failure: Answer | None = None
        """Given in place of every reply; None: replies."""
        self._count = threading.Lock()

    def fail(self, failure: Answer | None) -> None:
        """Answer so from now on."""
        self.failure = failure

    def _reply(self, asked: Asked) -> Answer:
        with self._count:
            failure = self.failure
            if failure is not None:
                self.counts.failed += isinstance(failure, HttpFailure)
                self.counts.garbled += failure is NO_JSON
                return failure
            number = len(self.counts.answered) + 1
            self.counts.answered[number] = time.monotonic()
        return Reply(
            text=f"```python\nGAIN = {number}.5\n\n\ndef compute_reward(cart_position):\n"
            "    closeness = -GAIN * cart_position.abs() / (1.0 + GAIN)\n"
            '    return closeness + 1.0, {"closeness": closeness}\n```\n',
            prompt_tokens=PROMPT_TOKENS,
            completion_tokens=REPLY_TOKENS,
        )

"""The model of the soak test: it numbers its replies, and fails as it is told to."""

from __future__ import annotations

import threading
import time

from batch_server import BatchServer
from model_server import Answer, Asked, Reply

PROMPT_TOKENS, REPLY_TOKENS = 120, 30
DOLLARS = 10
"""Price of a million tokens."""


class SoakServer(BatchServer):
    """Writes a reward for the cart-pole into every reply."""

    def __init__(self) -> None:
        super().__init__(self._reply)
        self.answered: dict[int, float] = {}
        """Times of good replies by their numbers, by `time.monotonic`."""
        self.failure: Answer | None = None
        """Given in place of every reply; None: replies."""
        self._count = threading.Lock()

    def _reply(self, asked: Asked) -> Answer:
        with self._count:
            if self.failure is not None:
                return self.failure
            number = len(self.answered) + 1
            self.answered[number] = time.monotonic()
        return Reply(
            text=f"```python\nGAIN = {number}.5\n\n\ndef compute_reward(cart_position):\n"
            "    closeness = -GAIN * cart_position.abs() / (1.0 + GAIN)\n"
            '    return closeness + 1.0, {"closeness": closeness}\n```\n',
            prompt_tokens=PROMPT_TOKENS,
            completion_tokens=REPLY_TOKENS,
        )

"""Iterations under way, in words."""

from __future__ import annotations


class IterationPhases:
    """Names of the iterations under way: several in a steady search, and while repeats train."""

    def __init__(self) -> None:
        self._under_way: dict[int, str] = {}
        """Remarks by iteration."""
        self._ended: set[int] = set()

    def enter(self, iteration: int, special: str) -> None:
        """Begin an iteration, perhaps with a remark."""
        self._under_way = {
            known: text for known, text in self._under_way.items() if known not in self._ended
        }
        self._under_way[iteration] = special

    def leave(self, iteration: int) -> bool:
        """End an iteration. True where that changes the text: the last one stays in it."""
        self._ended.add(iteration)
        changes = iteration in self._under_way and len(self._under_way) > 1
        if changes:
            del self._under_way[iteration]
        return changes

    def text(self, total: int) -> str:
        """`iteration 2 of 3`, or `iterations 1 (the best again) and 2 of 3`."""
        if len(self._under_way) == 1:
            ((iteration, special),) = self._under_way.items()
            return f"iteration {iteration + 1} of {total}" + (f", {special}" if special else "")
        named = [
            f"{iteration + 1}" + (f" ({special})" if special else "")
            for iteration, special in sorted(self._under_way.items())
        ]
        return f"iterations {' and '.join(named)} of {total}"

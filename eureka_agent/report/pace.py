"""Speed of a search and its remaining time, from env steps and from pauses for models' replies."""

from __future__ import annotations

from collections import deque

RATE_WINDOW_S = 20.0
"""Seconds of training behind the steps per second."""


class Pace:
    """Env steps over time, without pauses in which only models' replies are awaited."""

    def __init__(self) -> None:
        self.designed: set[int] = set()
        """Generations with a proposal of this process."""
        self._first: tuple[float, int] | None = None
        self._marks: deque[tuple[float, int]] = deque()
        self._pauses: dict[int, float] = {}
        """Seconds by generation."""
        self._paused_since_first = (0.0, 0)
        """Seconds, and env steps of baselines in them."""
        self._pause: tuple[int, float, int] | None = None
        """Generation, begin and env steps of the current pause."""
        self._idle = 0.0
        self._idle_since: float | None = None

    @property
    def steps_per_second(self) -> float | None:
        """Speed over the last `RATE_WINDOW_S` seconds of training; None before two marks."""
        if len(self._marks) < 2:
            return None
        (begin, steps_before), (end, steps_after) = self._marks[0], self._marks[-1]
        return max(0, steps_after - steps_before) / (end - begin) if end > begin else None

    def begin(self, now: float, env_steps: int) -> None:
        """Start the clock at the first training; later calls change nothing."""
        if self._first is None:
            self._first = (now, env_steps)

    def mark(self, now: float, env_steps: int) -> None:
        """Note the number of env steps at `now`."""
        self.train(now, True)
        trained = now - self._idle
        if not self._marks or trained > self._marks[-1][0]:
            self._marks.append((trained, env_steps))
        while len(self._marks) > 2 and trained - self._marks[0][0] > RATE_WINDOW_S:
            self._marks.popleft()

    def train(self, now: float, anything: bool) -> None:
        """Note whether anything trains from `now` on."""
        if self._idle_since is not None:
            self._idle += now - self._idle_since
        self._idle_since = None if anything else now

    def interrupt(self, earlier_steps: int = 0) -> None:
        """Note a jump of env steps; `earlier_steps` are older than the first training."""
        self._marks.clear()
        if self._first is not None:
            begin, steps = self._first
            self._first = (begin, steps + earlier_steps)

    def wait(self, now: float, env_steps: int, generation: int | None) -> None:
        """Begin a pause of this generation at `now`; None: end the pause."""
        if self._pause is not None:
            waited_for, since, steps_before = self._pause
            self._pauses[waited_for] = self._pauses.get(waited_for, 0.0) + now - since
            if self._first is not None:
                seconds, steps = self._paused_since_first
                seconds += now - max(since, self._first[0])
                steps += env_steps - max(steps_before, self._first[1])
                self._paused_since_first = seconds, steps
        self._pause = None if generation is None else (generation, now, env_steps)

    def seconds_left(self, now: float, done: int, total: int, generations: int) -> float | None:
        """Seconds for the remaining env steps and the pauses of further generations, if known."""
        if self._first is None:
            return None
        begin, steps_before = self._first
        paused, made_meanwhile = self._paused_since_first
        if self._pause is not None:
            _, since, steps = self._pause
            paused += now - max(since, begin)
            made_meanwhile += done - max(steps, steps_before)
        made, seconds = done - steps_before - made_meanwhile, now - begin - paused
        if made <= 0 or seconds < 1.0:
            return None
        return (total - done) * seconds / made + self._pauses_left(now, generations)

    def _pauses_left(self, now: float, generations: int) -> float:
        """Seconds of the current pause's rest and of further ones, by the earlier mean."""
        waits_for = None if self._pause is None else self._pause[0]
        ended = (self.designed | set(self._pauses)) - {waits_for}
        paused = sum(self._pauses.get(generation, 0.0) for generation in ended)
        usual = paused / len(ended) if ended else 0.0
        if self._pause is None or waits_for is None:
            return usual * generations
        so_far = self._pauses.get(waits_for, 0.0) + now - self._pause[1]
        return max(0.0, usual - so_far) + max(usual, so_far if not ended else 0.0) * generations

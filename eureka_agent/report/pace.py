"""Speed of a search, and the time that it will still take: env steps, and the pauses in which it
waits for models."""

from __future__ import annotations

from collections import deque

RATE_WINDOW_S = 20.0
"""Steps per second are those of this many last seconds of training."""


class Pace:
    """Env steps over time, apart from the pauses in which no candidate is in training because a
    model's reply is awaited."""

    def __init__(self) -> None:
        self.designed: set[int] = set()
        """Generations with a proposal of this process."""
        self._first: tuple[float, int] | None = None
        self._marks: deque[tuple[float, int]] = deque()
        self._pauses: dict[int, float] = {}
        """Seconds by generation."""
        self._paused_since_first = (0.0, 0)
        """Seconds, and env steps that baselines made meanwhile."""
        self._pause: tuple[int, float, int] | None = None
        """Generation, beginning and env steps then."""
        self._idle = 0.0
        """Seconds in which nothing trained."""
        self._idle_since: float | None = None

    @property
    def steps_per_second(self) -> float | None:
        """Over the last `RATE_WINDOW_S` seconds in which something trained; None before there are
        two marks."""
        if len(self._marks) < 2:
            return None
        (begin, steps_before), (end, steps_after) = self._marks[0], self._marks[-1]
        return max(0, steps_after - steps_before) / (end - begin) if end > begin else None

    def begin(self, now: float, env_steps: int) -> None:
        """The first training has a slot; later calls change nothing."""
        if self._first is None:
            self._first = (now, env_steps)

    def mark(self, now: float, env_steps: int) -> None:
        """So many env steps are made at `now`."""
        self.train(now, True)
        trained = now - self._idle
        if not self._marks or trained > self._marks[-1][0]:
            self._marks.append((trained, env_steps))
        while len(self._marks) > 2 and trained - self._marks[0][0] > RATE_WINDOW_S:
            self._marks.popleft()

    def train(self, now: float, anything: bool) -> None:
        """From `now` on something trains, or nothing does."""
        if self._idle_since is not None:
            self._idle += now - self._idle_since
        self._idle_since = None if anything else now

    def interrupt(self, earlier_steps: int = 0) -> None:
        """The number of env steps jumps, by `earlier_steps` that took none of the time since the
        first training."""
        self._marks.clear()
        if self._first is not None:
            begin, steps = self._first
            self._first = (begin, steps + earlier_steps)

    def wait(self, now: float, env_steps: int, generation: int | None) -> None:
        """From `now` on the search stands still until models have answered for this generation;
        None: it goes on."""
        if self._pause is not None:
            waited_for, since, steps_before = self._pause
            self._pauses[waited_for] = self._pauses.get(waited_for, 0.0) + now - since
            if self._first is not None:
                seconds, steps = self._paused_since_first
                seconds += now - max(since, self._first[0])
                self._paused_since_first = (
                    seconds,
                    steps + env_steps - max(steps_before, self._first[1]),
                )
        self._pause = None if generation is None else (generation, now, env_steps)

    def seconds_left(self, now: float, done: int, total: int, generations: int) -> float | None:
        """Seconds for the env steps from `done` to `total` and the pauses of so many generations to
        come. None before that can be told."""
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
        """Seconds: what is left of the pause that lasts now, and as much for every generation to
        come as for those before."""
        waits_for = None if self._pause is None else self._pause[0]
        ended = (self.designed | set(self._pauses)) - {waits_for}
        usual = (
            sum(self._pauses.get(generation, 0.0) for generation in ended) / len(ended)
            if ended
            else 0.0
        )
        if self._pause is None or waits_for is None:
            return usual * generations
        so_far = self._pauses.get(waits_for, 0.0) + now - self._pause[1]
        return max(0.0, usual - so_far) + max(usual, so_far if not ended else 0.0) * generations

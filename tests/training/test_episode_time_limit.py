"""The time limit around rewards: it interrupts, also what swallows exceptions, and leaves nothing
behind."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from eureka_agent.simulation.time_limit import TimeLimitError, time_limit


def test_a_block_in_time_is_left_alone_and_the_handler_put_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(5.0):
        assert signal.getsignal(signal.SIGALRM) is not before
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_block_that_swallows_the_first_alarm_meets_another() -> None:
    alarms = []

    def stubborn() -> None:
        while True:
            try:
                while True:
                    pass
            except BaseException:
                alarms.append(True)
                if len(alarms) == 2:
                    raise

    def limited() -> None:
        with time_limit(0.05):
            stubborn()

    with pytest.raises(TimeLimitError, match=r"longer than 0\.05 s"):
        limited()
    assert len(alarms) == 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_there_is_no_limit_outside_the_main_thread() -> None:
    reached = []

    def work() -> None:
        with time_limit(0.01):
            until = time.monotonic() + 0.05
            while time.monotonic() < until:
                pass
            reached.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert reached == [True]

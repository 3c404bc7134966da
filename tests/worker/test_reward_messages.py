"""A trainer reads from a reward's socket. The pair of sockets is real; its other end here has no
filter and does what it likes."""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from eureka_agent.worker.reward_process import NoAnswerError, receive, send, send_call

MOST = 1000
SECONDS = 0.3
End = Callable[[socket.socket], object]


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The trainer's end and the other. A test that waits for ever is woken, and fails."""
    ours, theirs = socket.socketpair()
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waited on and on"))
    signal.alarm(10)
    with ours, theirs:
        yield ours, theirs
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def length(size: int) -> bytes:
    return struct.pack("!I", size)


def drip(theirs: socket.socket) -> None:
    """A byte now and then of a message that is long enough to go on for ever."""

    def send_slowly() -> None:
        with contextlib.suppress(OSError):  # the test is over
            for byte in length(MOST) + bytes(200):
                theirs.send(bytes([byte]))
                time.sleep(0.01)

    threading.Thread(target=send_slowly, daemon=True).start()


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda theirs: None, TimeoutError),
        (lambda theirs: theirs.send(length(5)[:2]), TimeoutError),
        (lambda theirs: theirs.send(length(5) + b"hal"), TimeoutError),
        (lambda theirs: theirs.send(length(0xFFFFFFFF) + b"x"), ValueError),
        (lambda theirs: theirs.send(length(MOST + 1) + bytes(MOST + 1)), ValueError),
        (lambda theirs: theirs.close(), NoAnswerError),
        (lambda theirs: theirs.shutdown(socket.SHUT_WR), NoAnswerError),
        (lambda theirs: theirs.shutdown(socket.SHUT_RD), TimeoutError),
        (lambda theirs: (theirs.send(length(5) + b"hal"), theirs.close()), NoAnswerError),
        (lambda theirs: theirs.send(b"x", socket.MSG_OOB), (NoAnswerError, TimeoutError)),
        (lambda theirs: (theirs.send(length(5)), theirs.send(b"x", socket.MSG_OOB)), (NoAnswerError, TimeoutError)),
        (lambda theirs: [theirs.send(b"x", socket.MSG_OOB) for _ in range(50)], (NoAnswerError, TimeoutError, ValueError)),
        (drip, TimeoutError),
    ],
)  # fmt: skip
def test_no_state_of_the_socket_holds_up_the_reader(
    pair: tuple[socket.socket, socket.socket],
    end: End,
    expected: type[Exception] | tuple[type[Exception], ...],
) -> None:
    ours, theirs = pair
    end(theirs)
    began, worked = time.monotonic(), time.process_time()
    with pytest.raises(expected):
        receive(ours, SECONDS, MOST)
    assert time.monotonic() - began < SECONDS + 1.0
    assert time.process_time() - worked < SECONDS / 2  # nor does it ask again and again


def test_messages_arrive_whole_however_they_are_cut(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = pair
    for part in (length(5)[:1], length(5)[1:] + b"he", b"llo" + length(0), length(2) + b"on"):
        theirs.send(part)
    assert [receive(ours, SECONDS, MOST) for _ in range(3)] == [b"hello", b"", b"on"]
    send(ours, b"twice")
    assert receive(theirs) == b"twice"


def test_asking_one_that_does_not_read_never_waits(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    def ask_often() -> None:
        for _ in range(100_000):
            send_call(pair[0], 512)

    with pytest.raises(BlockingIOError):
        ask_often()

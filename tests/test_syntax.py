"""Syntax trees that several threads make, or the end of garbage beside them."""

from __future__ import annotations

import ast
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from eureka_agent import syntax
from eureka_agent.analysis.trajectories import read_trajectories
from eureka_agent.training.evaluation import load_trajectories

SOURCE = "\n".join(f"x{line} = (a + b * c[{line}]) ** 2 if d else [e, f(g)]" for line in range(60))
LITERAL = "{'a': [1, 2.5, (3, None)], 'b': {'c': -4}}"


class Cycle:
    """Garbage whose end runs Python, where threads may take turns."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(50))


@pytest.fixture
def many_turns() -> Iterator[None]:
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.set_threshold(50)
    yield
    sys.setswitchinterval(interval)
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("many_turns")
def test_threads_make_trees_and_read_arrays_at_the_same_time(tmp_path: Path) -> None:
    """CPython 3.11 mixes up the depths of trees that threads make at a time (SystemError)."""
    path = tmp_path / "trajectories.npz"
    np.savez(path, **{"worst/fitness": np.arange(3.0), "best/fitness": np.arange(4.0)})
    wrong: list[object] = []

    def work(once: Callable[[], object], expected: object) -> None:
        try:
            for _ in range(100):
                Cycle()
                if (found := once()) != expected:
                    wrong.append(found)
        except Exception as error:  # noqa: BLE001  (a thread's error fails no test)
            wrong.append(error)

    read, loaded = (
        lambda: read_trajectories(path)["best"]["fitness"].tolist(),
        lambda: load_trajectories(path)["best"]["fitness"].tolist(),
    )
    tasks = (
        (lambda: len(syntax.parsed(SOURCE).body), 60),
        (lambda: syntax.literal(LITERAL), {"a": [1, 2.5, (3, None)], "b": {"c": -4}}),
        (read, [0.0, 1.0, 2.0, 3.0]),
        (loaded, [0.0, 1.0, 2.0, 3.0]),
    )
    threads = [threading.Thread(target=work, args=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class Beginner:
    """Garbage that makes a tree at its end, as one does whose error is shown with its traceback."""

    ended = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        Beginner.ended += 1
        self._deeper(30)

    def _deeper(self, calls: int) -> None:
        if calls:
            self._deeper(calls - 1)
        else:
            ast.parse("(a + b)")


def test_garbage_that_makes_a_tree_ends_after_the_one_in_hand() -> None:
    thresholds = gc.get_threshold()
    gc.collect()
    Beginner()
    try:
        gc.set_threshold(700)  # the tree has 3,000 nodes
        assert len(syntax.parsed(SOURCE).body) == 60
    finally:
        gc.set_threshold(*thresholds)
    assert gc.isenabled()
    gc.collect()
    assert Beginner.ended == 1

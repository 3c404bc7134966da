from __future__ import annotations

from collections.abc import Callable

import pytest

from eureka_agent.archive.run_folder import Run
from eureka_agent.errors import SettingsError
from eureka_agent.search.budget import TimeLimit, outage_limit, time_limit
from eureka_agent.search.deadline import Deadline
from eureka_agent.settings import SearchSettings


@pytest.mark.parametrize(
    ("budget", "max_time", "limit"),
    [
        (None, None, None),
        ("5M", None, None),  # env steps
        ("10m", None, TimeLimit("10m", 600.0, stops_models=False)),
        (None, "1h30m", TimeLimit("1h30m (--max-time)", 5400.0)),
        ("10m", "8h", TimeLimit("10m", 600.0)),
        ("8h", "90s", TimeLimit("90s (--max-time)", 90.0)),
        ("5M", "90s", TimeLimit("90s (--max-time)", 90.0)),
    ],
)
def test_the_tighter_of_both_counts(
    budget: str | None, max_time: str | None, limit: TimeLimit | None
) -> None:
    assert time_limit(SearchSettings(env="cart", budget=budget, max_time=max_time)) == limit


@pytest.mark.parametrize("text", ["soon", "5M", "500k", "", "-1h"])
def test_what_is_no_wall_time_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="expected a wall time"):
        time_limit(SearchSettings(env="cart", max_time=text))


@pytest.mark.parametrize("text", ["0s", "0.5s", "99999999999h"])
def test_a_wall_time_out_of_range_says_the_range(text: str) -> None:
    with pytest.raises(
        SettingsError, match=rf"^--max-time is '{text}': expected 1 to 1,000,000,000 s\n"
    ):
        time_limit(SearchSettings(env="cart", max_time=text))


@pytest.mark.parametrize(
    ("outage", "seconds"), [("10m", 600.0), ("1h30m", 5400.0), ("off", 0.0), ("0", 0.0), (0, 0.0)]
)
def test_a_wait_for_a_server_that_is_out_is_read_like_a_time_limit(
    outage: str | int, seconds: float
) -> None:
    settings = SearchSettings.model_validate({"env": "cart", "outage": outage})
    assert outage_limit(settings) == seconds


@pytest.mark.parametrize("text", ["soon", "5M", "", "0s"])
def test_a_wait_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=rf"^--outage is '{text}': expected"):
        outage_limit(SearchSettings(env="cart", outage=text))


def test_the_time_is_up_when_it_has_passed(make_run: Callable[..., Run]) -> None:
    used = 89.0
    deadline = Deadline(
        make_run(), TimeLimit("90s (--max-time)", 90.0), lambda: used, lambda event: None
    )
    assert deadline.is_up() == ""
    used = 90.0
    assert deadline.is_up() == "1 min 30 s have passed of 90s (--max-time)"


def test_a_limit_of_all_searches_that_changes_holds_at_once(make_run: Callable[..., Run]) -> None:
    used, left = 100.0, TimeLimit("10m (max_time, of the batch)", 500.0)
    run = make_run(budget="15m")
    own = time_limit(run.settings)
    deadline = Deadline(run, own, lambda: used, lambda event: None, lambda: left)
    assert deadline.seconds_left() == 500.0
    left = TimeLimit("1h (max_time, of the batch)", 3500.0)
    assert deadline.limit == own
    assert deadline.seconds_left() == 800.0
    left = TimeLimit("1m (max_time, of the batch)", 0.0)
    assert deadline.is_up() == "1 min 40 s have passed of 1m (max_time, of the batch)"
    # a budget in time bounds generations, not requests
    used, left = 1000.0, TimeLimit("8h (max_time, of the batch)", 25_000.0)
    assert deadline.seconds_left() == 0.0
    assert deadline.is_up() == ""


def test_a_run_without_a_limit_is_never_up(make_run: Callable[..., Run]) -> None:
    deadline = Deadline(make_run(), None, lambda: 1e9, lambda event: None)
    assert deadline.seconds_left() is None
    assert deadline.is_up() == ""
    assert deadline.allows(5)

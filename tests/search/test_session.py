from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from planned_attempts import started

from eureka_agent.archive.artefacts import HTML_REPORT, REPORT
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.errors import SettingsError
from eureka_agent.fleet.devices import CPU, Hardware
from eureka_agent.journal.entries import Notice, RunEnded
from eureka_agent.journal.progress import RequestEnded, RequestStarted
from eureka_agent.records import Cost, RunStatus, TaskDescription
from eureka_agent.search.assembly import SAVING_SECONDS, saving_when_stopped
from eureka_agent.search.preparation import checked, effective_settings
from eureka_agent.search.recorder import Recorder, end_run
from eureka_agent.search.session import moved_devices


def test_a_person_overrides_the_task_and_the_task_the_defaults(
    description: TaskDescription,
) -> None:
    described = description.model_copy(
        update={"training_overrides": {"horizon": 64, "learning_rate": 1e-4}}
    )
    settings = effective_settings({"learning_rate": 5e-4, "seed": 3}, described, "cpu")
    assert (settings.env_steps, settings.num_envs, settings.horizon) == (10_000, 16, 64)
    assert (settings.learning_rate, settings.seed) == (5e-4, 3)


def test_choices_have_no_standard_deviation(description: TaskDescription) -> None:
    chosen = description.model_copy(update={"action_choices": (2,)})
    with pytest.raises(
        SettingsError, match=r"initial_action_std is 0\.5, but the actions"
    ) as error:
        effective_settings({"initial_action_std": 0.5}, chosen, "cpu")
    assert "--entropy-coefficient" in error.value.hint
    # a file of all settings has the default in it
    assert effective_settings({"initial_action_std": 1.0}, chosen, "cpu").initial_action_std == 1.0
    assert (
        effective_settings({"initial_action_std": 0.5}, description, "cpu").initial_action_std
        == 0.5
    )


def test_the_report_of_a_run_counts_its_time_up_to_its_end(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    run.archive.clock = lambda: 20.0  # an earlier process
    run.archive.append(RunEnded(status=RunStatus.STOPPED))
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    events: list[Any] = []
    recorder = Recorder(run, events.append)
    now += 100.0
    end_run(run, RunStatus.STOPPED, "", recorder)
    for name in (REPORT, HTML_REPORT):
        assert "2 min 0 s of wall time" in (run.folder / name).read_text()
    assert [type(event) for event in events] == [RunEnded]
    assert run.seconds == 120.0


def test_the_time_of_a_reply_outlives_a_kill(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    recorder = Recorder(run, lambda event: None)
    request = RequestStarted(number=0, model="openai/tiny", purpose="design of 1-01")
    now += 50.0
    recorder(request)
    assert open_run(run.folder).seconds == 0.0
    recorder(RequestEnded(request=request, cost=Cost()))
    assert open_run(run.folder).seconds == 50.0


MakeRun = Callable[..., Run]


def told(run: Run, hardware: Hardware) -> list[Notice]:
    """Notices when the run begins, or goes on, on this hardware."""
    before = run.archive.state.devices
    devices = " and ".join(hardware.names)
    run.archive.append(started(run.description, run.settings, devices=devices))
    return moved_devices(run, before[-1], hardware.kind) if before else []


def test_another_kind_of_device_is_warned_of_and_drops_saved_states(make_run: MakeRun) -> None:
    run = make_run()
    told(run, Hardware(("cuda:0", "cuda:1")))
    store = SnapshotStore(run.folder)
    store.put_points("1-01@7", ())
    store.state_path("1-01@7").write_bytes(b"state")
    told(run, Hardware(("cuda:1",)))  # the same kind
    assert store.state_path("1-01@7").exists()
    (warning,) = told(run, CPU)
    assert warning.level == "warning"
    assert "trained on cuda:1 before" in warning.text
    assert not store.state_path("1-01@7").exists()
    assert run.archive.state.devices == ("cuda:0 and cuda:1", "cuda:1", "cpu")


class Pool:
    """Stands for a pool whose workers take their time."""

    busy = True

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.saved = asyncio.Event()

    async def save(self, timeout_s: float) -> None:
        self.asked.append(timeout_s)
        await self.saved.wait()


class Work:
    """Never ends, and tells of its end."""

    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), False

    async def __call__(self) -> None:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = True


@pytest.mark.parametrize("again", [False, True])
async def test_the_trainings_end_when_they_are_saved_or_at_once_when_asked_again(
    again: bool,
) -> None:
    pool, work, told = Pool(), Work(), list[Any]()
    place: Any = pool
    running = asyncio.create_task(saving_when_stopped(work(), place, told.append))
    await work.began.wait()
    running.cancel()
    while not pool.asked:
        await asyncio.sleep(0)
    assert (pool.asked, work.ended) == ([SAVING_SECONDS], False)
    assert "Ctrl-C again" in told[0].text
    if again:
        running.cancel()
    else:
        pool.saved.set()
    async with asyncio.timeout(5):
        await asyncio.wait({running})
    assert running.cancelled()
    assert work.ended


async def test_an_error_on_the_way_to_the_end_is_no_traceback_of_an_abandoned_task() -> None:
    told: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: told.append(context))
    began = asyncio.Event()

    async def work() -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            raise ValueError("no room for a request")

    pool: Any = Pool()
    pool.busy = False
    running = asyncio.create_task(saving_when_stopped(work(), pool, lambda event: None))
    await began.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    del running
    gc.collect()
    assert told == []


@pytest.mark.parametrize("without", [{"baselines": False}, {"finalists": 0}])
def test_baselines_are_not_both_trained_and_left_out(without: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="--train-baselines trains the human"):
        checked({"train_baselines": True, **without}, None, None)

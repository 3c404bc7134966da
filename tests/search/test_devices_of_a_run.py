"""A run remembers what it trained on, and says so when it goes on with another kind of device."""

from __future__ import annotations

from collections.abc import Callable

from eureka_agent.archive.run_folder import Run
from eureka_agent.archive.snapshots import SnapshotStore
from eureka_agent.fleet.devices import CPU, Hardware
from eureka_agent.journal.entries import Notice, RunStarted
from eureka_agent.search.session import moved_devices
from eureka_agent.search.summary import run_report

MakeRun = Callable[..., Run]


def told(run: Run, hardware: Hardware) -> list[Notice]:
    """Notices when the run begins, or goes on, on this hardware."""
    before = run.archive.state.devices
    run.archive.append(
        RunStarted(
            run_name=run.name,
            description=run.description,
            sentence=run.sentence,
            settings=run.settings,
            wall="process",
            designer="offline",
            devices=" and ".join(hardware.names),
        )
    )
    return moved_devices(run, before[-1], hardware.kind) if before else []


def test_the_run_says_and_keeps_what_it_trains_on(make_run: MakeRun) -> None:
    run = make_run()
    assert told(run, CPU) == []
    assert told(run, CPU) == []  # resumed on the same
    assert run.archive.state.devices == ("cpu",)
    assert run_report(run).devices == ("cpu",)


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

"""Pruning takes what nothing needs again, from runs that nobody works on, and says what is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandLine
from planned_attempts import started
from stored_attempts import store_attempt

from eureka_agent.archive.files import locked
from eureka_agent.archive.run_folder import Run, open_run
from eureka_agent.errors import RunFolderError
from eureka_agent.feedback_records import Comparison
from eureka_agent.journal.entries import (
    FeedbackGiven,
    Pruned,
    RunEnded,
)
from eureka_agent.records import Attempt, RunStatus
from eureka_agent.search.pruning import prune, prune_plan

MakeRun = Callable[..., Run]
FEW = ("--finalists", "1", "--no-baselines", "--env-steps", "2048")


@pytest.fixture(scope="module")
def searched(shared_eureka: CommandLine, small: Callable[..., tuple[str, ...]]) -> CommandLine:
    """A finished search of three proposals, of which one is a finalist."""
    shared_eureka(*small(), "--iterations", "1", *FEW)
    return shared_eureka


@pytest.fixture
def copied(searched: CommandLine, tmp_path: Path) -> CommandLine:
    """The same, to be changed."""
    shutil.copytree(searched.folder / "runs", tmp_path / "runs")
    return CommandLine(tmp_path)


def files(folder: Path) -> dict[str, int]:
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (".lock", "archive.sqlite")
    }


@pytest.mark.slow
def test_a_pruned_run_keeps_what_its_winner_and_its_reports_need(copied: CommandLine) -> None:
    folder = copied.run_folder()
    before = files(folder)
    best = copied.json("show", "latest")["best"]["id"]
    others = sorted({"1-01", "1-02", "1-03"} - {best})
    ends = ("policy.safetensors", "trajectories.npz", "practice.npz")
    gone = {
        name
        for name in before
        for other in others
        if name.startswith(f"attempts/{other}/") and (name.endswith(ends) or "tfevents" in name)
    }
    assert len(gone) >= 2 * 4
    assert "there is no terminal to ask" in copied("runs", "--prune", status=1)
    assert files(folder) == before
    told = copied.json("runs", "--prune", "--yes")
    assert told["removed"]
    assert told["bytes"] == sum(before[name] for name in gone)
    assert files(folder) == {name: size for name, size in before.items() if name not in gone}
    # nothing is left to remove, and there is nothing to ask
    assert "nothing to remove" in copied("runs", "--prune")
    day = open_run(folder).archive.facts.pruned[others[0]][:10]
    assert f"were pruned on {day}" in " ".join(copied("show", "latest").split())
    copied("export", "latest")
    for command in ("video", "evaluate", "export"):
        error = copied(command, "latest", others[0], status=2)
        assert f"the policy of {others[0]!r} in the run {folder.name!r} was pruned on" in error
        assert f"/attempts/{others[0]}/reward.py --env" in error
    # and the search can go on
    copied("resume", "latest", "--iterations", "2")
    assert {each["iteration"] for each in copied.json("show", "latest")["attempts"]} == {0, 1}


@pytest.mark.slow
def test_a_kill_in_the_middle_leaves_a_run_that_can_be_pruned_further(
    copied: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied.run_folder()
    plan, unlink, calls = prune_plan(folder), Path.unlink, []

    def killed_at_the_third(path: Path, missing_ok: bool = False) -> None:
        calls.append(path)
        if len(calls) == 3:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", killed_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            prune(plan)
    run = open_run(folder)
    assert run.status is RunStatus.FINISHED
    assert set(run.archive.state.pruned) == {file.attempt for file in plan.files}
    rest = prune_plan(folder)
    assert {file.path for file in rest.files} == {file.path for file in plan.files[2:]}
    assert prune(rest).files == rest.files
    counts = [each.entry.files for each in run.archive.entries() if isinstance(each.entry, Pruned)]
    assert counts == [len(plan.files), len(plan.files) - 2]


@pytest.mark.slow
def test_a_run_in_which_somebody_compared_attempts_keeps_them_all(copied: CommandLine) -> None:
    folder = copied.run_folder()
    run = open_run(folder)
    said = Comparison(first="1-01", second="1-02", grade=1)
    run.archive.append(FeedbackGiven(who="you", feedback=said))
    assert prune_plan(folder).files == ()


def begin(run: Run) -> None:
    run.archive.append(started(run.description, run.settings, run_name=run.name))


def put(run: Run, *names: str) -> None:
    for name in names:
        path = run.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 100)


def test_a_stopped_run_gives_its_leftovers_alone(
    make_run: MakeRun, make_attempt: Callable[..., Attempt]
) -> None:
    run = make_run()
    begin(run)
    store_attempt(run.archive, make_attempt(0, 0, 1.0))
    run.archive.append(RunEnded(status=RunStatus.STOPPED))
    put(run, "attempts/1-01/policy.safetensors", ".snapshots/1-01.safetensors", "videos/a.mp4")
    put(run, ".workers/3/policy", "best/.video.mp4.draft-17-99")
    plan = prune_plan(run.folder)
    assert plan.by_kind() == {"leftovers": 200}
    assert plan.freed == 200
    assert [file.path.name for file in prune(plan).files] == [
        "policy",
        ".video.mp4.draft-17-99",
    ]
    assert run.archive.state.pruned == {}


def test_a_run_that_a_process_works_on_is_left_alone(make_run: MakeRun) -> None:
    run = make_run()
    begin(run)
    put(run, ".workers/policy")
    plan = prune_plan(run.folder)
    with locked(run.folder):
        assert prune_plan(run.folder).untouched == "a process works on it"
        with pytest.raises(RunFolderError, match="is being worked on by process"):
            prune(plan)
    assert (run.folder / ".workers/policy").is_file()


def test_a_run_of_somebody_else_is_left_alone(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("XDG_STATE_HOME", str(tmp_path / "somebody-else"))
        run = make_run()
        begin(run)
    plan = prune_plan(run.folder)
    assert (plan.untouched, plan.freed) == ("it is not your own; remove its folder by hand", 0)
    linked = tmp_path / "link"
    own = make_run()
    linked.symlink_to(own.folder)
    assert prune_plan(linked).untouched == "it is a link"

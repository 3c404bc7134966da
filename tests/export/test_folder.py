"""The attempt and folder of an export: the files that are written, and refusals before anything
is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from export_runs import MakeRun, export_of

from eureka_agent.errors import RunFolderError
from eureka_agent.export import folder as export_folder
from eureka_agent.export import policy_files
from eureka_agent.export.folder import default_folder, write_export
from eureka_agent.invocation import install_extra
from eureka_agent.records import TaskDescription
from eureka_agent.search.summary import run_report

pytestmark = pytest.mark.slow  # each writes both policies

SOURCE = "def compute_reward(cart_position):\n    return -cart_position, {}\n"
NAMES = {
    "README.md",
    "reward.py",
    "gymnasium_wrapper.py",
    "vec_task.py",
    "example.py",
    "policy.pt",
    "policy.json",
    "policy.onnx",
}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_the_best_and_an_attempt_lie_beside_each_other(
    make_run: MakeRun, description: TaskDescription
) -> None:
    run = make_run(SOURCE, description)
    attempt = default_folder(run.folder, "1-01")
    export_of(run, attempt, "1-01")
    written = export_of(
        run, default_folder(run.folder, None)
    )  # which holds the other's folder by now
    assert written.folder == run.folder / "export"
    assert names(written.folder) == NAMES | {"1-01"}
    assert {path.name for path in written.files} == NAMES
    assert written.missing == {}
    assert names(attempt) == NAMES
    # the best's policy and the attempt's first are two trainings
    assert (attempt / "policy.pt").read_bytes() != (written.folder / "policy.pt").read_bytes()
    readme = (written.folder / "README.md").read_text()
    assert (
        "Fitness: 12.50 s over 1 training of the search (seconds within 0.1 m of the centre)"
        in readme
    )
    assert (
        "| `cart_position` | (batch,) | m | world | position of the cart along the rail |" in readme
    )


def test_an_earlier_export_is_written_over_and_nothing_else_is(
    make_run: MakeRun, description: TaskDescription, tmp_path: Path
) -> None:
    run, folder = make_run(SOURCE, description), tmp_path / "taken away"
    export_of(run, folder)
    (folder / "reward.py").write_text("changed")
    export_of(run, folder)
    assert "compute_reward" in (folder / "reward.py").read_text()
    for content in ("README.md", "notes.txt"):
        mine = tmp_path / content.partition(".")[0]
        mine.mkdir()
        (mine / content).write_text("# mine")
        with pytest.raises(RunFolderError, match="is not empty and no earlier export"):
            export_of(run, mine)
        assert names(mine) == {content}


def test_without_the_extra_all_but_the_onnx_file_is_written(
    make_run: MakeRun, description: TaskDescription, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, folder = make_run(SOURCE, description), tmp_path / "taken away"
    export_of(run, folder)
    monkeypatch.setattr(policy_files, "ONNX_PACKAGES", ("onnx", "no_such_package"))
    written = export_of(run, folder)
    assert written.missing == {
        "policy.onnx": f"it needs no_such_package: {install_extra('export')}, then export again"
    }
    # the earlier one is gone: it would be another policy than the rest of the folder
    assert names(folder) == NAMES - {"policy.onnx"}
    readme = (folder / "README.md").read_text()  # read elsewhere, by somebody else
    assert "There is no `policy.onnx`" in readme
    assert "setup.sh" not in readme
    assert "export again" not in readme
    assert "both policy files" not in readme
    assert_runs_in_silence(folder / "example.py")


def assert_runs_in_silence(script: Path) -> None:
    """Run it where there is no NumPy, of which torch warns."""
    code = (
        "import runpy, sys; sys.modules['numpy'] = None; runpy.run_path('example.py',"
        " run_name='__main__')"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=script.parent, capture_output=True, text=True, timeout=120
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("actions: tensor([[")


def test_what_cannot_be_exported_is_told_with_a_reason(
    make_run: MakeRun, description: TaskDescription, tmp_path: Path
) -> None:
    run, out = make_run(SOURCE, description), tmp_path / "taken away"
    with pytest.raises(RunFolderError, match="has no attempt '1-1'") as unknown:
        export_of(run, out, "1-1")
    assert "1-01" in unknown.value.hint
    with pytest.raises(
        RunFolderError, match=r"'1-02' has no policy: it is rejected \(A201: an import of numpy\)"
    ):
        export_of(run, out, "1-02")
    (run.folder / "best" / "policy.safetensors").unlink()
    with pytest.raises(RunFolderError, match="has no best policy yet"):
        export_of(run, out)
    assert not out.exists()


def test_a_damaged_policy_leaves_no_half_export(
    make_run: MakeRun, description: TaskDescription
) -> None:
    run = make_run(SOURCE, description)
    (run.folder / "best" / "policy.safetensors").write_bytes(b"no")
    with pytest.raises(RunFolderError, match="cannot read the policy"):
        write_export(run, run_report(run), None, default_folder(run.folder, None))
    assert not (run.folder / export_folder.EXPORT).exists()

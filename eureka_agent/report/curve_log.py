"""Curves of trainings for Weights & Biases, trackio and MLflow, by their own API. Each is
sent by a process of its own: `python -m eureka_agent.report.curve_log LIBRARY FOLDER` reads it.

They log offline into the run's folder, unless their own variables (`WANDB_MODE`, `TRACKIO_DIR`,
`MLFLOW_TRACKING_URI`) say another place. TensorBoard's files are always written."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eureka_agent.errors import SettingsError
from eureka_agent.invocation import install_extra
from eureka_agent.journal.entries import Notice
from eureka_agent.records import CurvePoint
from eureka_agent.report.curves import scalars
from eureka_agent.text import one_line

FOLDER = "logs"
"""Folder of a run with what the libraries write."""
PROJECT = "eureka-agent"
_SECONDS = 120.0
"""Longest wait for one training's curve, also at a search's end."""
_MOST_REASON = 200


def check_installed(libraries: Sequence[str]) -> None:
    """Raise SettingsError for a library that is not installed."""
    for name in libraries:
        if name != "tensorboard" and importlib.util.find_spec(name) is None:
            what = f"--log {name} needs the package {name}, which is not installed"
            raise SettingsError(what, f"install it: {install_extra(name)}")


class CurveLog:
    """Sends the curve of each ended training to libraries, beside the search."""

    def __init__(
        self, libraries: Sequence[str], run: Path, observer: Callable[[Notice], None]
    ) -> None:
        """`run`: the run's folder. `observer` gets the first failure of each library."""
        self._libraries = [name for name in libraries if name != "tensorboard"]
        self._run, self._observer = run, observer
        self._sending: set[asyncio.Task[None]] = set()

    def add(self, name: str, config: dict[str, Any], points: Sequence[CurvePoint]) -> None:
        """Send a training's points. `config`: what it was made with, for the library's table."""
        curve = [(point.env_steps, dict(scalars(point))) for point in points]
        told = json.dumps({"run": self._run.name, "name": name, "config": config, "curve": curve})
        for library in self._libraries:
            task = asyncio.create_task(self._send(library, told))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Wait for what is under way."""
        await asyncio.gather(*self._sending)

    async def _send(self, library: str, told: str) -> None:
        folder = self._run / FOLDER
        folder.mkdir(exist_ok=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, library, str(folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_SECONDS):
                _, errors = await process.communicate(told.encode())
            lines = errors.decode(errors="replace").strip().splitlines()
            reason = "" if process.returncode == 0 else (lines or ["no word"])[-1]
        except TimeoutError:
            reason = f"it did not end within {_SECONDS:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        if reason and library in self._libraries:
            self._libraries.remove(library)  # the others of this run would fail likewise
            text = f"no more curves go to {library}: {one_line(reason, _MOST_REASON)}"
            self._observer(Notice(text=text, level="warning"))


# ── the process ───────────────────────────────────────────────────────────────────────────────────


def _to_wandb(told: dict[str, Any], folder: Path) -> None:
    import wandb

    os.environ.setdefault("WANDB_MODE", "offline")
    os.environ.setdefault("WANDB_SILENT", "true")
    names = {"project": PROJECT, "group": told["run"], "name": told["name"]}
    run = wandb.init(**names, config=told["config"], dir=folder)
    for env_steps, values in told["curve"]:
        run.log(values, step=env_steps)
    run.finish()


def _to_trackio(told: dict[str, Any], folder: Path) -> None:
    os.environ.setdefault("TRACKIO_DIR", str(folder / "trackio"))
    import trackio  # reads the variable

    name = f"{told['run']}/{told['name']}"
    trackio.init(project=PROJECT, group=told["run"], name=name, config=told["config"])
    for env_steps, values in told["curve"]:
        trackio.log(values, step=env_steps)
    trackio.finish()


def _to_mlflow(told: dict[str, Any], folder: Path) -> None:
    # a folder of files, its former default, is refused since MLflow 3.17
    os.environ.setdefault("MLFLOW_TRACKING_URI", f"sqlite:///{folder / 'mlflow.db'}")
    import mlflow

    mlflow.set_experiment(PROJECT)
    with mlflow.start_run(run_name=told["name"], tags={"run": told["run"]}):
        mlflow.log_params(told["config"])
        for env_steps, values in told["curve"]:
            mlflow.log_metrics(values, step=env_steps)


_SENDERS = {"wandb": _to_wandb, "trackio": _to_trackio, "mlflow": _to_mlflow}


def main(library: str, folder: str) -> None:
    """Send the training on standard input."""
    _SENDERS[library](json.load(sys.stdin), Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:3])

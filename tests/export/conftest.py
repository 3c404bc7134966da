"""Runs with one trained attempt and a random policy, made without training, and their exports as
importable modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from export_runs import ExportTexts, LoadModule, MakeRun, policy_tensors, write_texts
from outcomes import make_outcome
from policy_files import save_policy
from stored_attempts import store_attempt

from eureka_agent.archive.artefacts import BEST, POLICY, REWARD, attempt_folder
from eureka_agent.archive.files import write_text
from eureka_agent.archive.run_folder import Run, create_run
from eureka_agent.records import Attempt, Operator, Proposal, Stage, TaskDescription
from eureka_agent.rewards import CodeReward
from eureka_agent.settings import SearchSettings
from eureka_agent.training.distributions import Categorical, Gaussian

EXPORTED_MODULES = ("reward", "gymnasium_wrapper", "vec_task")


def attempt_of(source: str, sample: int, fitness: float | None) -> Attempt:
    """Trained where it has a fitness, else rejected."""
    return Attempt(
        id=f"1-{sample:02d}",
        iteration=0,
        sample=sample - 1,
        revision=0,
        proposal=Proposal(
            reward=CodeReward(source=source, author="offline"),
            reasoning="",
            operator=Operator.FRESH,
        ),
        stage=Stage.REJECTED if fitness is None else Stage.TRAINED,
        reason="A201: an import of numpy" if fitness is None else "",
        seed=1,
        outcome=None if fitness is None else make_outcome(fitness),
    )


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Makes a run whose attempt 1-01 has this reward, a fitness of 12.5 and is the best, and whose
    1-02 was rejected."""

    def make(
        source: str, description: TaskDescription, sentence: str = "do as you are told"
    ) -> Run:
        settings = SearchSettings(env=description.environment, sentence=sentence)
        run = create_run(settings, description, [], parent=tmp_path / "runs")
        store_attempt(run.archive, attempt_of(source, 1, 12.5))
        store_attempt(run.archive, attempt_of(source, 2, None))
        write_text(run.folder / BEST / REWARD, source)
        choices = description.action_choices
        distribution = Categorical(choices) if choices else Gaussian(description.num_actions)
        sizes = (description.num_observations, 16, distribution.num_outputs)
        for seed, folder in enumerate((run.folder / BEST, attempt_folder(run.folder, "1-01"))):
            folder.mkdir(parents=True, exist_ok=True)
            metadata = {"activation": "elu", **distribution.metadata}
            save_policy(folder / POLICY, policy_tensors(sizes, seed), metadata)
        return run

    return make


@pytest.fixture
def export_texts(make_run: MakeRun, tmp_path: Path) -> ExportTexts:
    """Writes the Python files and the README of a reward for an environment; gives the folder."""

    def exported(
        source: str, description: TaskDescription, sentence: str = "do as you are told"
    ) -> Path:
        return write_texts(make_run(source, description, sentence), tmp_path / "taken away")

    return exported


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadModule]:
    """Imports a module of an exported folder, as a script in that folder does."""

    def forget() -> None:
        for name in EXPORTED_MODULES:
            sys.modules.pop(name, None)

    def imported(folder: Path, name: str) -> ModuleType:
        monkeypatch.syspath_prepend(str(folder))
        forget()
        return importlib.import_module(name)

    yield imported
    forget()

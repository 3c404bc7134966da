"""The corpus of reward functions as language models publish them: its files, and what each says of
itself.

One by hand: `PYTHONPATH=$PWD/tests/critic/corpus/shared eureka critique
tests/critic/corpus/working/NAME.py --env tests/critic/corpus/envs/ENVIRONMENT`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
SHARED = CORPUS / "shared"
"""Modules that the environments import: a folder for PYTHONPATH."""


@dataclass(frozen=True)
class CorpusFile:
    """One reward function."""

    path: Path
    source: str
    environment: str
    """Folder in `corpus/envs`."""
    reason: str
    """Why it is broken; empty where it works."""

    @property
    def name(self) -> str:
        return self.path.stem


def corpus_files(folder: str) -> list[CorpusFile]:
    """Files of `working` or `broken`, sorted by name."""
    return [_read(path) for path in sorted((CORPUS / folder).glob("*.py"))]


def environment_folder(name: str) -> Path:
    return CORPUS / "envs" / name


def _read(path: Path) -> CorpusFile:
    source = path.read_text(encoding="utf-8")
    environment = re.match(r"# environment: (\w+)\n", source)
    assert environment, f"{path} does not begin with `# environment: <name>`"
    reason = re.search(r"\A.*\n# broken: (.+)\n", source)
    return CorpusFile(path, source, environment[1], reason[1] if reason else "")

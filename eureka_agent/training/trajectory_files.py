"""Files of an evaluation's episodes."""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eureka_agent.array_files import check_arrays, read_episodes
from eureka_agent.errors import RunFolderError

Trajectory = dict[str, NDArray[np.generic]]
"""Variables, `observations` (a policy's input), `actions`, `fitness`; first dimension: step."""


def trajectories_bytes(trajectories: dict[str, Trajectory]) -> bytes:
    """Trajectories as npz: plain arrays named `<episode>/<variable>`."""
    arrays = {
        f"{episode}/{name}": array
        for episode, values in trajectories.items()
        for name, array in values.items()
    }
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def load_trajectories(path: Path) -> dict[str, Trajectory]:
    """Read an npz of `trajectories_bytes` without unpickling. Raises RunFolderError."""
    try:
        check_arrays(path)
        return read_episodes(path)
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise RunFolderError(
            f"cannot read the trajectories {str(path)!r}: {error}",
            "name a trajectories.npz of a run",
        ) from None

"""Libraries of this machine with which a worker draws MuJoCo's scenes, for the image.

They are EGL with Mesa's software renderer, or OSMesa. Loaders find them by name while a program
runs, so no list of a program's libraries holds them.
"""

from __future__ import annotations

import os
from pathlib import Path

_FOLDERS = (f"/usr/lib/{os.uname().machine}-linux-gnu", "/usr/lib64", "/usr/lib")
_LIBRARIES = (
    *("libEGL.so.1", "libEGL_mesa.so.0", "libOpenGL.so.0", "libGL.so.1", "libGLX_mesa.so.0"),
    "libOSMesa.so.8",
)
_DRIVER = "dri/swrast_dri.so"
"""Software renderer of Mesa before version 24.2; later ones have it in a library that
libEGL_mesa names."""
_VENDOR_FILE = "/usr/share/glvnd/egl_vendor.d/50_mesa.json"
"""Tells libEGL of Mesa."""


def drawing_files() -> dict[str, Path]:
    """The files that are here, by their names below the image's prefix."""
    found = {}
    for name in (*_LIBRARIES, _DRIVER):
        paths = (Path(folder) / name for folder in _FOLDERS)
        path = next((path for path in paths if path.is_file()), None)
        if path is not None:
            found[f"lib/{name}"] = path
    if Path(_VENDOR_FILE).is_file():
        found["share/egl_vendor.json"] = Path(_VENDOR_FILE)
    return found


def drawing_settings(prefix: str) -> str:
    """Dockerfile line by which the loaders find the files below `prefix`."""
    return (
        f"ENV __EGL_VENDOR_LIBRARY_FILENAMES=/{prefix}/share/egl_vendor.json"
        f" LIBGL_DRIVERS_PATH=/{prefix}/lib/dri"
    )

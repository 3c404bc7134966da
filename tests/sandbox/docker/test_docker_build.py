"""Builds that fail, on a real engine: what a person is told, and that nothing stays behind."""

from __future__ import annotations

import importlib.metadata
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker.engine import Engine
from eureka_agent.sandbox.docker.host_base import base_tag
from eureka_agent.sandbox.docker.image import Choice, Recipe, ensure_image, image_for
from eureka_agent.sandbox.docker.wheelhouse import own_wheelhouse

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture(scope="module")
def on_a_named_base(engine: Engine) -> Recipe:
    """This machine's Python under a name, and none of the packages."""
    host = image_for(engine, Choice())
    ensure_image(engine, host, print)
    base = base_tag(host.base_identity, host.pins)
    return replace(host, base=base, base_identity=str(engine.client.images.get(base).id), pins=())


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """pip alone."""
    name = f"pip-{importlib.metadata.version('pip')}-*.whl"
    for wheel in own_wheelhouse().glob(name):
        (tmp_path / wheel.name).symlink_to(wheel)
    return tmp_path


@pytest.fixture
def empty_image(engine: Engine) -> Iterator[str]:
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as made:
        made.addfile(tarfile.TarInfo("file"))
    engine.client.api.import_image_from_data(
        archive.getvalue(), repository="eureka-test-empty", tag="1"
    )
    yield "eureka-test-empty:1"
    engine.client.images.remove("eureka-test-empty:1")


def test_a_base_of_another_python(
    engine: Engine, on_a_named_base: Recipe, wheelhouse: Path
) -> None:
    before = unnamed(engine)
    with pytest.raises(
        WallError, match=r"its `python` is Python 3\.\S+, and the packages are for Python 3\.99"
    ) as caught:
        ensure_image(engine, replace(on_a_named_base, python="3.99"), print, wheelhouse)
    assert "such as python:3.99-slim" in caught.value.hint
    assert unnamed(engine) == before


def test_a_base_without_python(
    engine: Engine, on_a_named_base: Recipe, wheelhouse: Path, empty_image: str
) -> None:
    before = unnamed(engine)
    identity = str(engine.client.images.get(empty_image).id)
    with pytest.raises(WallError, match=r'built: .*"python": executable file not found') as caught:
        ensure_image(
            engine,
            replace(on_a_named_base, base=empty_image, base_identity=identity),
            print,
            wheelhouse,
        )
    assert "--base-image host" in caught.value.hint
    assert unnamed(engine) == before


def test_a_base_that_lacks_a_library(
    engine: Engine, on_a_named_base: Recipe, wheelhouse: Path
) -> None:
    """It was found to be no good in the first search only."""
    code = (
        "try:\n    raise OSError('libnowhere.so: cannot open')\nexcept OSError as error:\n    raise"
        " ImportError('advice') from error\n"
    )
    with zipfile.ZipFile(wheelhouse / "numpy-0.1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("numpy.py", code)
        wheel.writestr(
            "numpy-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n"
        )
        wheel.writestr(
            "numpy-0.1.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("numpy-0.1.dist-info/RECORD", "")
    with pytest.raises(WallError, match=r"cannot import numpy: libnowhere\.so: cannot open"):
        ensure_image(engine, replace(on_a_named_base, pins=("numpy==0.1",)), print, wheelhouse)


def test_requirements_that_are_not_there(
    engine: Engine, on_a_named_base: Recipe, wheelhouse: Path
) -> None:
    with pytest.raises(
        WallError, match="No matching distribution found for no-such-package"
    ) as caught:
        ensure_image(
            engine, replace(on_a_named_base, requirements="no-such-package"), print, wheelhouse
        )
    assert "--requirements" in caught.value.hint


@pytest.mark.parametrize("name", ["two words", "UPPER", "a:b:c"])
def test_a_name_that_is_none(engine: Engine, name: str) -> None:
    with pytest.raises(WallError, match="invalid reference format") as caught:
        image_for(engine, Choice(name))
    assert "--base-image NAME" in caught.value.hint


def unnamed(engine: Engine) -> set[str]:
    """Images of the engine that are left over."""
    return {str(image.id) for image in engine.client.images.list(filters={"dangling": True})}

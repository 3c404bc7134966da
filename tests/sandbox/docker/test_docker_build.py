"""Builds of a few small packages on a real engine: their results, and the message to a person if
one fails. Nothing stays behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eureka_agent.errors import WallError
from eureka_agent.sandbox.docker import build
from eureka_agent.sandbox.docker.build import ensure_image, has_image
from eureka_agent.sandbox.docker.engine import Engine
from eureka_agent.sandbox.docker.leftovers import list_containers, list_images
from eureka_agent.sandbox.docker.recipe import Recipe, image_members

pytestmark = [pytest.mark.docker, pytest.mark.slow]

IMPORTED = ("torch", "numpy", "mujoco", "gymnasium", "pydantic", "yaml")


@pytest.fixture
def recipe(install: Callable[..., Path], tmp_path: Path) -> Recipe:
    """All that a worker imports, each an empty module, on this machine's Python."""
    for name in IMPORTED:
        install(name, "0.1")
    install("safetensors", "0.1", "", ("safetensors/__init__.py", "safetensors/torch.py"))
    return Recipe(tuple(f"{name}==0.1" for name in (*IMPORTED, "safetensors")), str(tmp_path))


@pytest.fixture(autouse=True)
def nothing_left(engine: Engine) -> Iterator[None]:
    """No image without a name, no draft, and no container of an image that was made here: other
    tests may start containers of theirs meanwhile."""

    def images() -> set[str]:
        dangling = engine.client.images.list(filters={"dangling": True})
        return {str(image.id) for image in (*list_images(engine), *dangling)}

    before = images()
    yield
    assert images() == before
    assert {str(container["ImageID"]) for container in list_containers(engine)} <= before


def test_an_image_is_built_once_and_has_the_packages(
    engine: Engine, install: Callable[..., Path], recipe: Recipe
) -> None:
    install("some_package", "2.0", "import ssl, sqlite3, torch\nword = 'here'")
    recipe = replace(recipe, pins=(*recipe.pins, "some_package==2.0"))
    said: list[str] = []
    tag = ensure_image(engine, recipe, said.append)
    try:
        assert [line.partition(" (")[0] for line in said] == [
            f"building the image of the sandbox, {tag}"
        ]
        output = engine.client.containers.run(
            tag,
            ["-c", "import os, some_package; print(some_package.word, os.getuid())"],
            entrypoint=["python"],
            network_mode="none",
            remove=True,
        )
        assert output == b"here 65534\n"
        assert ensure_image(engine, recipe, said.append) == tag
        assert len(said) == 1
    finally:
        engine.client.images.remove(tag)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        # numpy puts a page of advice around the reason
        ("raise ImportError('\\nADVICE\\n\\nOriginal error was: libx.so\\n')", "was: libx.so"),
        pytest.param(
            "import os; os._exit(3)", "python ends at once", marks=pytest.mark.in_turns(1)
        ),
    ],
)
def test_a_package_that_cannot_be_imported_there(
    engine: Engine, install: Callable[..., Path], recipe: Recipe, source: str, words: str
) -> None:
    """Its fault used to show only in the first search."""
    install("numpy", "0.1", source)
    with pytest.raises(WallError, match="the image of the sandbox cannot be built: ") as caught:
        ensure_image(engine, recipe, print)
    assert caught.value.message.endswith(words)
    assert not has_image(engine, recipe.tag)


@pytest.mark.in_turns(2)
def test_a_file_that_vanishes_meanwhile(
    engine: Engine, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine imports half an archive without a word."""
    monkeypatch.setattr(
        build, "image_members", lambda recipe: image_members(recipe) | {"x": tmp_path / "gone"}
    )
    with pytest.raises(WallError, match=r"cannot read '.*/gone', .* no such file"):
        ensure_image(engine, recipe, print)
    assert not has_image(engine, recipe.tag)


@pytest.mark.in_turns(0)
def test_what_a_killed_build_has_left_is_built_anew(engine: Engine, recipe: Recipe) -> None:
    name, _, tag = recipe.tag.partition(":")
    engine.client.api.import_image_from_data(bytes(1024), repository=name, tag=f"{tag}-draft")
    assert not has_image(engine, recipe.tag)
    assert ensure_image(engine, recipe, print) == recipe.tag
    assert not has_image(engine, f"{recipe.tag}-draft")
    engine.client.images.remove(recipe.tag)

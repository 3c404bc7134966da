"""The image of the workers: a name for all that goes in, and the build where there is none of that
name."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, ImageNotFound

from eureka_agent.errors import WallError, WallNotBuiltError
from eureka_agent.invocation import command
from eureka_agent.resources import resource_folder
from eureka_agent.sandbox.docker.archive import Entry, tar_stream
from eureka_agent.sandbox.docker.build_log import BuildLog
from eureka_agent.sandbox.docker.cache import cache_errors, cache_folder, cache_lock
from eureka_agent.sandbox.docker.engine import Engine, engine_errors
from eureka_agent.sandbox.docker.host_base import base_files, base_tag, host_identity
from eureka_agent.sandbox.docker.packages import OPTIONAL_ROOTS, pinned
from eureka_agent.sandbox.docker.wheelhouse import (
    REQUIREMENTS_HINT,
    choose,
    fill,
    own_wheelhouse,
    python_version,
)

IMAGE_NAME = "eureka-worker"
IMAGE_LABEL = "eureka-agent"
"""Label of the images and containers of this package; its value says of what kind."""
HOST_BASE = "host"
"""In place of an image's name: a base image made of this machine's Python."""
_BUILD_SECONDS = 3600.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Choice:
    """What a person decided about the image."""

    base_image: str = HOST_BASE
    requirements: str = ""
    """Text of a requirements file: packages beside those that workers need."""


@dataclass(frozen=True)
class Recipe:
    """All that goes into an image."""

    dockerfile: str
    install: str
    """What runs in the build: `sandboxes/install.py`."""
    base: str
    """`HOST_BASE` or an image's name."""
    base_identity: str
    """What the base is, whatever its name: a hash of this machine's Python, or the image's id."""
    pins: tuple[str, ...]
    requirements: str = ""
    python: str = ""
    """Major and minor version: the packages are built for it, and the base image must have it."""

    @property
    def tag(self) -> str:
        """The image's name and tag: another one when anything of this is another."""
        content = json.dumps(asdict(self), sort_keys=True)
        return f"{IMAGE_NAME}:{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def choice_file() -> Path:
    """Where a choice is kept, so that all searches of this person find the same image."""
    return cache_folder() / "sandbox.json"


def read_choice() -> Choice:
    """What `eureka sandbox build` was last told; the default where it never was. Raises WallError
    for a file that is none of ours."""
    path = choice_file()
    try:
        return Choice(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Choice()
    except (OSError, ValueError, TypeError) as error:
        raise WallError(
            f"cannot read what the sandbox's image is to be made of: {str(path)!r}: {error}",
            f"remove that file and run: {command('sandbox build')}",
        ) from None


def keep_choice(choice: Choice) -> None:
    """Write it down for `read_choice`."""
    with cache_errors():
        choice_file().parent.mkdir(parents=True, exist_ok=True)
        choice_file().write_text(json.dumps(asdict(choice), indent=2) + "\n", encoding="utf-8")


def image_for(engine: Engine, choice: Choice, pull: bool = True) -> Recipe:
    """What the image is to be made of, as things are now. Raises WallError.

    A base image that was named and is not here is pulled, or without `pull` a WallNotBuiltError.
    """
    identity = (
        host_identity()
        if choice.base_image == HOST_BASE
        else _base_identity(engine, choice.base_image, pull)
    )
    dockerfile, install = (
        (resource_folder("sandboxes") / name).read_text(encoding="utf-8")
        for name in ("Dockerfile", "install.py")
    )
    # half a gigabyte that is of use on a GPU alone
    pins = pinned(optional=OPTIONAL_ROOTS if engine.has_gpus else ())
    return Recipe(
        dockerfile,
        install,
        choice.base_image,
        identity,
        pins,
        choice.requirements,
        python_version(),
    )


def built_image(engine: Engine, choice: Choice) -> str:
    """The tag of the image, which is only looked for. Raises WallNotBuiltError where it is to be
    built first, WallError."""
    recipe = image_for(engine, choice, pull=False)
    if not has_image(engine, recipe.tag):
        raise _not_built(recipe.tag)
    return recipe.tag


def _not_built(name: str) -> WallNotBuiltError:
    return WallNotBuiltError(
        f"the image {name!r} has not been built yet",
        f"{command('sandbox build')}, which takes about a minute; the first search does it"
        " otherwise",
    )


def ensure_image(engine: Engine, recipe: Recipe, say: Say, wheelhouse: Path | None = None) -> str:
    """The tag of the image, which is built where it is missing. `wheelhouse`: a folder of wheels to
    use instead of downloading them. Raises WallError."""
    if has_image(engine, recipe.tag):
        return recipe.tag
    with cache_lock("build"):  # a second search waits for the first one's image
        if not has_image(engine, recipe.tag):
            _build(engine, recipe, say, wheelhouse)
    return recipe.tag


def has_image(engine: Engine, tag: str) -> bool:
    """Whether the engine has it. Raises WallError."""
    return _image(engine, tag) is not None


def list_images(engine: Engine) -> list[Any]:
    """Images of workers and their bases, newest first. Raises WallError."""
    with engine_errors(engine.host):
        images = [
            image
            for name in (IMAGE_NAME, f"{IMAGE_NAME}-base")
            for image in engine.client.images.list(name)
        ]
    return sorted(images, key=lambda image: str(image.attrs.get("Created")), reverse=True)


def remove_image(engine: Engine, image: Any) -> None:
    """Remove an image under all its names. Raises WallError, for one in use too."""
    with engine_errors(engine.host):
        for tag in image.tags:
            with contextlib.suppress(ImageNotFound):
                engine.client.images.remove(tag)


def _image(engine: Engine, name: str) -> Any | None:
    with engine_errors(engine.host):
        try:
            return engine.client.images.get(name)
        except ImageNotFound:
            return None


def _base_identity(engine: Engine, name: str, pull: bool) -> str:
    image = _image(engine, name)
    if image is None and not pull:
        raise _not_built(name)
    if image is None:
        try:
            with engine_errors(engine.host):
                engine.client.images.pull(
                    name, tag=None if ":" in name.rpartition("/")[2] or "@" in name else "latest"
                )
        except WallError as error:
            raise WallError(
                f"there is no image {name!r} here, and it cannot be pulled: {error.message}",
                "load it (docker load), or let one be made of this machine's Python: --base-image"
                " host",
            ) from None
        image = _image(engine, name)
        if image is None:
            raise WallError(f"there is no image {name!r}", "name another one: --base-image")
    volumes = image.attrs.get("Config", {}).get("Volumes")
    if volumes:  # every container would get a writable folder there
        raise WallError(
            f"the image {name!r} declares volumes ({', '.join(volumes)}), which a worker could"
            " write into without a limit",
            "name an image without volumes: --base-image",
        )
    return str(image.id)


def _build(engine: Engine, recipe: Recipe, say: Say, wheelhouse: Path | None) -> None:
    packages = len(recipe.pins)
    if wheelhouse is not None:
        choose(
            wheelhouse, recipe.pins, recipe.requirements
        )  # what is not there is said before anything begins
    say(
        f"building the image of the sandbox, {recipe.tag} ({packages} packages); this happens"
        " once ..."
    )
    folder = own_wheelhouse() if wheelhouse is None else wheelhouse
    with ThreadPoolExecutor(1) as other:  # pip is busy with itself, the engine with the base
        making = other.submit(_base, engine, recipe)
        if wheelhouse is None:
            fill(folder, recipe.pins, recipe.requirements)
        wheels, pip = choose(folder, recipe.pins, recipe.requirements)
        base = making.result()
    context = [
        Entry("Dockerfile", data=recipe.dockerfile.encode(), mode=0o644),
        Entry("build/install.py", data=recipe.install.encode(), mode=0o644),
        Entry("build/python.txt", data=recipe.python.encode(), mode=0o644),
        Entry("build/pins.txt", data="\n".join(recipe.pins).encode(), mode=0o644),
        Entry("build/pip.whl", source=pip, mode=0o644),
        *(Entry(f"build/wheels/{wheel.name}", source=wheel, mode=0o644) for wheel in wheels),
    ]
    if recipe.requirements:
        context.append(
            Entry("build/requirements.txt", data=recipe.requirements.encode(), mode=0o644)
        )
    with engine_errors(engine.host), _slow_client(engine) as client:
        answers = client.build(
            fileobj=_Readable(_archive(context)),
            custom_context=True,
            buildargs={"BASE_IMAGE": base},
            tag=recipe.tag,
            network_mode="none",
            labels={IMAGE_LABEL: "image"},
            decode=True,
            rm=True,
            forcerm=True,
            pull=False,
        )
        log = BuildLog()
        log.follow(answers)
        if log.error:
            # the engine keeps what it had made, hundreds of megabytes under no name
            for layer in reversed(log.layers[1:]):
                with contextlib.suppress(APIError):
                    client.remove_image(layer, noprune=True)
            raise WallError(
                f"the image of the sandbox cannot be built: {log.error}", _build_hint(recipe, log)
            )
    here = f"Python {platform.python_version()} and {_c_library()}"
    if recipe.base != HOST_BASE and log.found and log.found != here:
        say(
            f"{recipe.base} has {log.found}, this machine {here}: fitness may differ in its last"
            " digits from that behind other walls"
        )


def _base(engine: Engine, recipe: Recipe) -> str:
    """Name or id of the base image, which is made where it is this machine's own and missing."""
    if recipe.base != HOST_BASE:
        return recipe.base_identity
    tag = base_tag(recipe.base_identity, recipe.pins)
    if not has_image(engine, tag):
        _import_base(engine, tag, recipe.pins)
    return tag


def _import_base(engine: Engine, tag: str, pins: tuple[str, ...]) -> None:
    entries, settings = base_files(pins)
    settings.append(f"LABEL {IMAGE_LABEL}=base")
    name, _, version = tag.partition(":")
    with engine_errors(engine.host), _slow_client(engine) as client:
        try:
            client.import_image_from_data(
                _archive(entries), repository=name, tag=version, changes=settings
            )
        except BaseException:
            # the engine imports half an archive without a word
            with contextlib.suppress(Exception):
                client.remove_image(tag)
            raise


def _build_hint(recipe: Recipe, log: BuildLog) -> str:
    if log.installs == "requirements":
        return REQUIREMENTS_HINT
    if recipe.base == HOST_BASE:
        return f"{command('sandbox build')} tries again"
    return (
        f"expected an image whose `python` is Python {recipe.python}, with glibc and libstdc++,"
        f" such as python:{recipe.python}-slim; or let one be made of this machine's Python:"
        f" --base-image {HOST_BASE}"
    )


def _c_library() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or "no glibc"
    except (ValueError, OSError):
        return "no glibc"


@contextlib.contextmanager
def _slow_client(engine: Engine) -> Iterator[docker.APIClient]:
    """A connection on which the engine may be silent for long."""
    client = docker.APIClient(base_url=engine.host, version="auto", timeout=_BUILD_SECONDS)
    try:
        yield client
    finally:
        client.close()


def _archive(entries: Iterable[Entry]) -> Iterator[bytes]:
    """The archive in pieces. Raises WallError for a file that cannot be read."""
    with cache_errors():  # around this alone: the SDK's own errors are OSErrors too
        yield from tar_stream(entries)


class _Readable:
    """An archive in pieces as the SDK wants it: something to go through."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

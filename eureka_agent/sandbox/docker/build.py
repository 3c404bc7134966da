"""Build of the workers' image: an archive of this machine's files that the engine imports."""

from __future__ import annotations

import contextlib
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

import docker
from docker.errors import APIError, ContainerError, DockerException, ImageNotFound
from docker.types import LogConfig

from eureka_agent.errors import OTHER_WALL, WallError, WallNotBuiltError, system_reason
from eureka_agent.invocation import command
from eureka_agent.sandbox.docker.cache import cache_lock
from eureka_agent.sandbox.docker.engine import Engine, engine_errors
from eureka_agent.sandbox.docker.leftovers import LABEL, container_labels
from eureka_agent.sandbox.docker.recipe import (
    SETTINGS,
    Member,
    Recipe,
    current_recipe,
    image_members,
)
from eureka_agent.sandbox.wall import Say

_BUILD_SECONDS = 3600.0
_PIECE_BYTES = 1 << 20
_CHECK = "import torch, numpy, mujoco, gymnasium, pydantic, yaml, safetensors.torch"


def built_image(engine: Engine) -> str:
    """Tag of the existing image. Raises WallNotBuiltError and WallError."""
    tag = current_recipe(engine.has_gpus).tag
    if not has_image(engine, tag):
        hint = f"{command('sandbox build')}; the first search does it otherwise"
        raise WallNotBuiltError(f"the image {tag!r} has not been built yet", hint)
    return tag


def ensure_image(engine: Engine, recipe: Recipe, say: Say) -> str:
    """Tag of the image, built if it is missing. Raises WallError."""
    if not has_image(engine, recipe.tag):
        with cache_lock("build"):  # a second search waits for the first one's image
            if not has_image(engine, recipe.tag):
                what = f"{recipe.tag} ({len(recipe.pins)} packages)"
                say(f"building the image of the sandbox, {what}; this happens once ...")
                _build(engine, recipe)
    return recipe.tag


def has_image(engine: Engine, tag: str) -> bool:
    """True where the engine has the image. Raises WallError."""
    with engine_errors(engine.host), contextlib.suppress(ImageNotFound):
        engine.client.images.get(tag)
        return True
    return False


def tar_stream(members: Mapping[str, Member]) -> Iterator[bytes]:
    """The archive in pieces, as it may have gigabytes; owned by root, with the files' times, on
    which compiled Python depends. Raises WallError for an unreadable file."""
    folders = set()
    for name, content in members.items():
        for folder in map(str, reversed(PurePosixPath(name).parents[:-1])):
            if folder not in folders:
                folders.add(folder)
                yield _header(folder, tarfile.DIRTYPE, 0o755)
        if content is None:
            yield _header(name, tarfile.DIRTYPE, 0o1777)
        elif isinstance(content, bytes):
            yield _header(name, tarfile.REGTYPE, 0o644, len(content)) + content
            yield bytes(-len(content) % tarfile.BLOCKSIZE)
        else:
            try:
                yield from _file(name, content)
            except OSError as error:
                raise WallError(
                    f"cannot read {str(content)!r}, which goes into the image of the sandbox:"
                    f" {system_reason(error)}",
                    "let it be read, or install again what it belongs to" + OTHER_WALL,
                ) from None
    yield bytes(2 * tarfile.BLOCKSIZE)


def _build(engine: Engine, recipe: Recipe) -> None:
    """Import and test the image under another name, so that searches find only a working one."""
    members = image_members(recipe)
    name, _, tag = recipe.tag.partition(":")
    draft = f"{tag}-draft"
    client = docker.DockerClient(base_url=engine.host, version="auto", timeout=_BUILD_SECONDS)
    with engine_errors(engine.host), contextlib.closing(client):
        _discard(client, f"{name}:{draft}")  # left by a killed build
        try:
            settings = [*SETTINGS, f"LABEL {LABEL}=image"]
            answers = client.api.import_image_from_data(
                tar_stream(members), repository=name, tag=draft, changes=settings
            )
            for answer in map(json.loads, answers.splitlines()):
                if "error" in answer:  # the request itself succeeded
                    raise APIError(str(answer["error"]))
            _check(client, f"{name}:{draft}")
            client.images.get(f"{name}:{draft}").tag(name, tag)
        finally:
            _discard(client, f"{name}:{draft}")


def _check(client: docker.DockerClient, image: str) -> None:
    """Import the workers' libraries in a container. Raises WallError with the reason of failure."""
    try:
        client.containers.run(
            image,
            ["-c", _CHECK],
            entrypoint=["python"],
            environment={"MUJOCO_GL": "disable"},
            network_mode="none",
            labels=container_labels(),
            log_config=LogConfig(type=LogConfig.types.JSON),
            remove=True,
        )
    except ContainerError as error:
        words = (error.stderr or b"python ends at once").decode(errors="replace").strip()
        raise WallError(
            f"the image of the sandbox cannot be built: {words.splitlines()[-1]}",
            "look whether that works here, outside of the image" + OTHER_WALL,
        ) from None


def _discard(client: docker.DockerClient, image: str) -> None:
    with contextlib.suppress(DockerException, OSError):
        client.images.remove(image, force=True)


def _file(name: str, source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        status = os.fstat(file.fileno())
        size, mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
        yield _header(name, tarfile.REGTYPE, mode, size, int(status.st_mtime))
        left = size
        while left:
            piece = file.read(min(left, _PIECE_BYTES))
            if not piece:
                raise OSError(0, "it became shorter while it was read", str(source))
            left -= len(piece)
            yield piece
        yield bytes(-size % tarfile.BLOCKSIZE)


def _header(name: str, kind: bytes, mode: int, size: int = 0, modified: int = 0) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.size, member.mtime = kind, mode, size, modified
    return member.tobuf(tarfile.PAX_FORMAT)

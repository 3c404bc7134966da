"""Containers and images of this package, found by label and removed."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

from docker.errors import APIError, NotFound

from eureka_agent.errors import EurekaError
from eureka_agent.sandbox.docker.engine import Engine, connect, engine_errors
from eureka_agent.sandbox.docker.markers import dead_markers, is_gone, this_driver

LABEL = "eureka-agent"
"""Label of this package's images and containers; its value is the kind."""
DRIVER_LABEL = "eureka-agent.driver"
"""Label of a container with its driver as JSON (`markers.this_driver`)."""
CONTAINER_KIND = "worker"
_REAP_SECONDS = 5.0
_OTHERS_SECONDS = 10.0


def container_labels() -> dict[str, str]:
    return {LABEL: CONTAINER_KIND, DRIVER_LABEL: json.dumps(this_driver(), sort_keys=True)}


def driver_of(container: dict[str, Any]) -> dict[str, str]:
    """Driver of a container in the engine's list; empty for a label that is not ours."""
    try:
        driver = json.loads((container.get("Labels") or {}).get(DRIVER_LABEL, ""))
        return {str(key): str(value) for key, value in driver.items()}
    except (ValueError, AttributeError):
        return {}


def list_containers(engine: Engine) -> list[dict[str, Any]]:
    """All containers of this package, as in the engine's list. Raises WallError."""
    with engine_errors(engine.host):
        found: list[dict[str, Any]] = engine.client.api.containers(
            all=True, filters={"label": f"{LABEL}={CONTAINER_KIND}"}
        )
    return found


def remove_container(engine: Engine, name: str) -> None:
    """Kill and remove a container if it is there. Raises WallError."""
    with engine_errors(engine.host), contextlib.suppress(NotFound):
        try:
            engine.client.api.remove_container(name, force=True, v=True)
        except APIError as error:
            if "already in progress" not in str(error.explanation):
                raise
            deadline = time.monotonic() + _OTHERS_SECONDS
            while time.monotonic() < deadline:
                engine.client.api.inspect_container(name)
                time.sleep(0.05)


def remove_leftovers(engine: Engine) -> int:
    """Remove containers of dead drivers; return their number. Raises WallError."""
    dead = [each for each in list_containers(engine) if is_gone(driver_of(each))]
    for container in dead:
        remove_container(engine, container["Id"])
    return len(dead)


def remove_after_dead_drivers() -> int:
    """Remove containers of dead drivers by their markers; return their number. Skip engines without
    an answer. An engine may still be creating what a driver asked for when it was killed, so a
    marker goes only with a look that finds nothing."""
    removed = 0
    for path, host in dead_markers():
        with contextlib.suppress(EurekaError, OSError):
            engine = connect({"DOCKER_HOST": host}, _REAP_SECONDS)
            try:
                found = remove_leftovers(engine)
            finally:
                engine.close()
            removed += found
            if not found:
                path.unlink(missing_ok=True)
    return removed

"""Requests to a running batch: status, pause, resume, cancel, retune, stop; all may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eureka_agent.batch.file import BatchSettings
from eureka_agent.batch.matrix import OF_THE_BATCH
from eureka_agent.batch.queue import CANCELLING, ENDED, Entry, State
from eureka_agent.errors import EurekaError, SettingsError, did_you_mean
from eureka_agent.settings import FREE_SETTINGS, SearchSettings, parse_settings

if TYPE_CHECKING:
    from eureka_agent.batch.driver import BatchDriver

_BROUGHT_BACK = (State.CANCELLED, State.FAILED, CANCELLING)
ACTIONS = ("status", "pause", "resume", "cancel", "retune", "stop")


class Requests:
    """Answers requests on behalf of a driver."""

    def __init__(self, driver: BatchDriver) -> None:
        self._driver = driver

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a request asks for. Raises EurekaError for one that makes no sense."""
        action, search = request.get("action"), request.get("search")
        entry = None if search is None else self._driver.queue.entry(str(search))
        match action:
            case "status":
                pass
            case "pause":
                self._pause(entry)
            case "resume":
                self._resume(entry)
            case "cancel" if entry is None:
                for each in self._driver.queue.entries():
                    self._cancel(each)
            case "cancel":
                assert entry is not None  # the case above has the others
                self._cancel(entry)
            case "retune":
                self._retune(entry, request.get("settings"))
            case "stop":
                if not self._driver.stopping:
                    self._driver.stop("a person asked for it")
            case _:
                raise EurekaError(f"no action {action!r}", did_you_mean(str(action), ACTIONS))
        return self._status()

    def _pause(self, entry: Entry | None) -> None:
        if entry is None:
            if not self._driver.paused:
                self._driver.pause()
        elif entry.name in self._driver.active:
            if entry.name not in self._driver.paused_searches:
                self._driver.pause(entry.name)
        elif entry.state is not State.PAUSED:
            raise EurekaError(
                f"the search {entry.name!r} is {entry.state.value}, and only one that is under way"
                " can pause",
                "cancel it, if it is not to begin",
            )

    def _resume(self, entry: Entry | None) -> None:
        if entry is None:
            if self._driver.paused:
                self._driver.resume()
        elif entry.state is not State.FINISHED and (
            entry.name in self._driver.paused_searches
            or self._driver.state_in_words(entry) in _BROUGHT_BACK
        ):
            self._driver.resume(entry.name)

    def _cancel(self, entry: Entry) -> None:
        if entry.state not in ENDED:
            self._driver.cancel(entry.name)

    def _retune(self, entry: Entry | None, changes: Any) -> None:
        if not isinstance(changes, dict) or not changes:
            raise SettingsError("no setting to change is given", "write name=value")
        if entry is None:
            now = self._driver.settings.model_dump(mode="json", exclude_none=True)
            # where the batch began without one, no price is known and no spending counted
            new = {"max_cost", "max_tokens"} - set(now)
            fixed = [name for name in changes if name in OF_THE_BATCH or name in new]
            if fixed:
                raise SettingsError(
                    f"{fixed[0]} cannot change while the batch runs",
                    "stop the batch, change the file and start it again",
                )
            settings = parse_settings(BatchSettings, {**now, **changes}, "the request")
            self._driver.retune_batch(settings)
            return
        for name in changes:
            if name not in FREE_SETTINGS:
                known = did_you_mean(name, FREE_SETTINGS)
                raise SettingsError(f"{name!r} cannot change in a search that has begun", known)
        parse_settings(SearchSettings, {**entry.settings, **changes}, "the request")
        if any(entry.settings.get(name) != value for name, value in changes.items()):
            self._driver.retune(entry.name, changes)

    def _status(self) -> dict[str, Any]:
        driver = self._driver
        return {
            "paused": driver.paused,
            "stopping": driver.stopping,
            "trainings": driver.trainings_under_way,
            "searches": {each.name: driver.state_in_words(each) for each in driver.queue.entries()},
        }

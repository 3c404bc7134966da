"""Events of a command environment (docs/protocol.md): their bounds, and the error for another one.
The command runs generated rewards, so nothing that it says is trusted."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from eureka_agent.boundary.bounds import FILE_NAME_PATTERN
from eureka_agent.errors import EurekaError
from eureka_agent.records import (
    MOST_CHOICES,
    ArgumentName,
    ConstantSpec,
    Count,
    NativeTerm,
    PlainText,
    Record,
    ShortName,
    ShortSentence,
    Size,
    VariableSpec,
)
from eureka_agent.reward_names import MOST_COMPONENTS
from eureka_agent.settings import validation_fault
from eureka_agent.task import QuaternionOrder

PROTOCOL = 1
MOST_EVENT_BYTES = 1 << 30
"""Bytes of all events of one job."""
MOST_POLICIES = 100
_SHOWN_CHARACTERS = 120
FileName = Annotated[str, Field(pattern=f"^{FILE_NAME_PATTERN}$")]
"""File in the job folder."""
Id = Annotated[str, Field(max_length=100)]


class ProtocolFaultError(EurekaError):
    """A line that is no event, or one out of bounds."""


class Abilities(Record):
    """Parts of the protocol that the command speaks."""

    rungs: bool = False
    save: bool = False
    film: bool = False
    dry_run: bool = False
    rewards: int = Field(1, ge=1, le=1000)
    """Trainings that one process takes."""


class DescribedEvent(Record):
    event: Literal["described"] = "described"
    protocol: int = PROTOCOL
    doc: PlainText = ""
    variables: tuple[VariableSpec, ...] = Field(max_length=10_000)
    constants: tuple[ConstantSpec, ...] = Field((), max_length=1000)
    quaternion_order: QuaternionOrder = "wxyz"
    num_observations: Size
    num_actions: Size
    action_choices: Annotated[tuple[Count, ...], Field(max_length=MOST_CHOICES)] = ()
    control_dt: FiniteFloat = Field(gt=0)
    max_episode_length: int = Field(gt=0, lt=1 << 31)
    ends: dict[ShortName, PlainText] = Field(default_factory=dict, max_length=1000)
    success_ends: tuple[ShortName, ...] = Field((), max_length=1000)
    native_terms: tuple[NativeTerm, ...] = Field((), max_length=1000)
    versions: dict[ShortName, ShortSentence] = Field(default_factory=dict, max_length=100)
    can: Abilities = Abilities()


class EpisodeEvent(Record):
    event: Literal["episode"] = "episode"
    by: Id
    """A policy's id; `"zero"` or `"random"` in a description."""
    number: Count
    length: int = Field(gt=0, lt=1 << 31)
    ended_by: ShortName
    fitness: FiniteFloat
    start: dict[ArgumentName, Any] | None = None
    values: dict[ArgumentName, list[Any]] | None = None
    """By variable, an entry for each step."""
    fitness_steps: list[float] | None = None


class RanEvent(Record):
    event: Literal["ran"] = "ran"
    training: Id


class TermNumbers(Record):
    mean: FiniteFloat
    magnitude: FiniteFloat
    deviation: FiniteFloat


class CurveEvent(Record):
    event: Literal["curve"] = "curve"
    training: Id
    env_steps: Count
    fitness: FiniteFloat | None = None
    episode_length: FiniteFloat | None = None
    episodes: Count = 0
    reward: FiniteFloat
    terms: dict[ShortName, TermNumbers] = Field(default_factory=dict, max_length=MOST_COMPONENTS)
    ends: dict[ShortName, Count] = Field(default_factory=dict, max_length=1000)


class RungEvent(Record):
    event: Literal["rung"] = "rung"
    training: Id
    env_steps: Count
    policy: FileName


class SavedEvent(Record):
    event: Literal["saved"] = "saved"
    training: Id
    env_steps: Count
    state: FileName


class StoredPolicy(Record):
    env_steps: Count
    policy: FileName


class TrainedEvent(Record):
    event: Literal["trained"] = "trained"
    training: Id
    env_steps: Count
    policies: tuple[StoredPolicy, ...] = Field(min_length=1, max_length=MOST_POLICIES)


class EvaluatedEvent(Record):
    event: Literal["evaluated"] = "evaluated"
    policy: Id


class FilmedEvent(Record):
    event: Literal["filmed"] = "filmed"
    policy: Id
    number: Count
    pictures: FileName


class FaultEvent(Record):
    event: Literal["fault"] = "fault"
    whose: Literal["reward", "environment", "trainer"]
    message: PlainText
    training: Id | None = None
    line: int | None = Field(None, ge=1, lt=1 << 31)
    """Line of `reward.py`."""
    hint: PlainText = ""


CommandEvent = Annotated[
    DescribedEvent
    | EpisodeEvent
    | RanEvent
    | CurveEvent
    | RungEvent
    | SavedEvent
    | TrainedEvent
    | EvaluatedEvent
    | FilmedEvent
    | FaultEvent,
    Field(discriminator="event"),
]
_EVENT: TypeAdapter[CommandEvent] = TypeAdapter(CommandEvent)


def _no_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, expected finite numbers")


def read_event(line: bytes) -> CommandEvent:
    """The event in a line. Raises ProtocolFaultError."""
    shown = line[:_SHOWN_CHARACTERS].decode(errors="replace")
    hint = "docs/protocol.md lists the events; look at what the script writes to events.jsonl"
    try:
        value = json.loads(line, parse_constant=_no_constant)
        return _EVENT.validate_python(value)
    except ValidationError as error:
        what = f"the command wrote an event that is wrong: {validation_fault(error)}: {shown!r}"
        raise ProtocolFaultError(what, hint) from None
    except (ValueError, RecursionError) as error:
        what = f"the command wrote a line that is no event: {error}: {shown!r}"
        raise ProtocolFaultError(what, hint) from None

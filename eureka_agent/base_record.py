"""`Record`, the base of all plain data that passes between the parts or is stored."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Base of all records: closed (no unknown keys) and immutable."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, ser_json_inf_nan="null", defer_build=True
    )

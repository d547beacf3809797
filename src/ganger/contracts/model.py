"""What all models of file formats share: strictness, JSON numbers, optional fields, rules a schema cannot express."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from ganger.contracts.ids import id_problem

Location = tuple[str | int, ...]
Item = TypeVar("Item")
_LARGEST = 1.7976931348623157e308
_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that the raw data at `location` breaks."""

    location: Location
    code: str
    message: str


class Contract(BaseModel):
    """A part of a file format: unknown fields and converted types are refused, values never change."""

    # Most commands use one or two of the formats, and building all of them at import would be a third of the start-up.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)

    @classmethod
    def rules(cls, data: object) -> Iterator[Broken]:
        """Rules beyond the schema, applied to raw data of any shape, so that every fault is reported at once."""
        del data
        return iter(())


@dataclass(frozen=True, slots=True)
class _Given:
    """An optional field: absent is None; a null in the file is refused."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        made = handler(source)
        assert made["type"] == "nullable"
        inner: CoreSchema = made["schema"]
        return inner


@dataclass(frozen=True, slots=True)
class _NumberRule:
    """A finite JSON number, kept as it was written: an integer stays one."""

    minimum: int | None = None
    maximum: int | None = None
    nullable: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        low = int(-_LARGEST if self.minimum is None else self.minimum)
        high = int(_LARGEST if self.maximum is None else self.maximum)
        whole = core_schema.int_schema(strict=True, ge=low, le=high)
        real = core_schema.float_schema(strict=True, ge=low, le=high, allow_inf_nan=False)
        either: CoreSchema = core_schema.union_schema([whole, real], mode="left_to_right")
        if self.nullable:
            either = core_schema.nullable_schema(either)
        return core_schema.custom_error_schema(
            either, "number", custom_error_message="{expected}", custom_error_context={"expected": self._expected()}
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        made: JsonSchemaValue = {"type": ["number", "null"] if self.nullable else "number"}
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        return made | {name: value for name, value in bounds.items() if value is not None}

    def _expected(self) -> str:
        kind = "a number or null" if self.nullable else "a number"
        if self.maximum is not None:
            return f"{kind} from {self.minimum} to {self.maximum}"
        return kind if self.minimum is None else f"{kind} of at least {self.minimum}"


@dataclass(frozen=True, slots=True)
class IdRule:
    """A string that may become a file name."""

    code: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "minLength": 1}

    def _check(self, value: str) -> str:
        problem = id_problem(value)
        if problem:
            raise PydanticCustomError(self.code, "{problem}", {"problem": problem})
        return value


def _date_time(value: str) -> str:
    found = _DATE_TIME.fullmatch(value)
    try:
        if found:
            datetime.fromisoformat(found[1])
            return value
    except ValueError:
        pass
    raise PydanticCustomError("date_time", "a date-time such as 2026-03-20T15:21:00Z")


Given = Annotated[Item | None, _Given()]
ListOf = Annotated[tuple[Item, ...], Field(strict=False)]
NonEmpty = Annotated[str, Field(min_length=1)]
DateTime = Annotated[str, AfterValidator(_date_time), Field(json_schema_extra={"format": "date-time"})]
Number = Annotated[int | float, _NumberRule()]
NumberOrNull = Annotated[int | float | None, _NumberRule(nullable=True)]
Count = Annotated[int | float, _NumberRule(minimum=0)]
Positive = Annotated[int | float, _NumberRule(minimum=1)]
Share = Annotated[int | float, _NumberRule(minimum=0, maximum=1)]


def members(data: object, name: str) -> Iterator[tuple[int, dict[str, object]]]:
    """The objects of the array `name` in raw data, with their places; none where the shape is wrong."""
    array = data.get(name) if isinstance(data, dict) else None
    if isinstance(array, list | tuple):
        yield from ((place, item) for place, item in enumerate(array) if isinstance(item, dict))

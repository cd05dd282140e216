"""The types of settings as pydantic checks them, against the line of the table that has their name."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Unpack, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from orrery.scenario.amounts import amount
from orrery.scenario.setting import Setting

PLAIN = re.compile(r"[\s\d.+-]*")
"""Types that pydantic reads by itself, to the last digit."""


def _printable(value: str | None) -> str | None:
    """Names and paths are typed by people: no control characters."""
    if value is not None and not value.isprintable():
        raise ValueError("write it without control characters")
    return value


Count = int | None
Number = Annotated[float | None, Field(allow_inf_nan=False)]
Switch = bool | None
Word = Annotated[str | None, Field(min_length=1, max_length=4096), AfterValidator(_printable)]


class Settings(BaseModel):
    """Settings of one table; a field has their type, and the table their bounds. Blank means that it was not said."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=True)

    table: ClassVar[Mapping[str, Setting]] = {}

    def __init_subclass__(cls, *, table: Mapping[str, Setting] | None = None, **config: Unpack[ConfigDict]) -> None:
        """Take the table whose lines the fields are; a class without one has that of its base."""
        super().__init_subclass__(**config)
        cls.table = cls.table if table is None else table

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Refuse a number that no line of the table bounds, before anything reads it."""
        numbers = [name for name, field in cls.model_fields.items() if {int, float} & set(get_args(field.annotation))]
        if unknown := [name for name in numbers if name not in cls.table]:
            raise TypeError(f"{cls.__name__}: {', '.join(unknown)} in no line of its table")

    def asks(self, *names: str) -> bool:
        """Whether any of these settings is given."""
        return any(getattr(self, name) not in (None, ()) for name in names)

    @field_validator("*")
    @classmethod
    def _within_bounds(cls, value: Any, info: ValidationInfo) -> Any:
        """A number within what its setting says."""
        setting = cls.table.get(str(info.field_name))
        if value is not None and setting and setting.is_numeric and not setting.holds(value):
            raise PydanticCustomError("out_of_bounds", "out of bounds")
        return value

    @field_validator("*", mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Any:
        """Text with a multiplier or unit, such as ``1k`` or ``200ms``, as a number; other text is left to pydantic."""
        setting = cls.table.get(str(info.field_name))
        if setting is None or not setting.is_numeric:
            return value
        if isinstance(value, bool):
            raise ValueError("a truth value is no number")
        if not isinstance(value, str) or PLAIN.fullmatch(value):
            return value
        found = amount(value, setting.name, setting.most)
        return value if found is None else found

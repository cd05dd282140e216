"""The types of settings as pydantic checks them."""

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from orrery.scenario.amounts import amount
from orrery.scenario.fields import BY_NAME
from orrery.scenario.validation_errors import limited

PLAIN = re.compile(r"[\s\d.+-]*")
"""What pydantic reads by itself, to the last digit."""


def _typed(value: Any, info: ValidationInfo) -> Any:
    """Text with a multiplier or unit, such as ``1k`` or ``200ms``, as a number; other text is left to pydantic."""
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    if not isinstance(value, str) or info.field_name is None or PLAIN.fullmatch(value):
        return value
    setting = BY_NAME.get(info.field_name)
    found = amount(value, info.field_name, setting.most if setting else math.inf)
    return value if found is None else found


def _printable(value: str | None) -> str | None:
    """Names and paths are typed by people: no control characters."""
    if value is not None and not value.isprintable():
        raise ValueError("write it without control characters")
    return value


def bounds(name: str) -> dict[str, Any]:
    """Default and limits of a number, as the list of settings states them."""
    return limited(BY_NAME[name])


Count = Annotated[int | None, BeforeValidator(_typed)]
Number = Annotated[float | None, BeforeValidator(_typed)]
Switch = bool | None
Word = Annotated[str | None, Field(min_length=1, max_length=4096), AfterValidator(_printable)]

"""The types of settings as pydantic checks them."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from orrery.scenario.fields import BY_NAME
from orrery.scenario.mistakes import limited


def _no_bool(value: Any) -> Any:
    """``true`` is not a number here, whatever Python thinks."""
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


def _printable(value: str | None) -> str | None:
    """Names and paths are typed by people: no control characters."""
    if value is not None and not value.isprintable():
        raise ValueError("write it without control characters")
    return value


def bounds(name: str) -> dict[str, Any]:
    """Default and limits of a number, as the list of settings states them."""
    return limited(BY_NAME[name])


Count = Annotated[int | None, BeforeValidator(_no_bool)]
Number = Annotated[float | None, BeforeValidator(_no_bool)]
Switch = bool | None
Word = Annotated[str | None, Field(min_length=1, max_length=4096), AfterValidator(_printable)]

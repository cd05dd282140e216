"""Values of a JSON answer, each as the kind that is expected; empty or None where it is of another kind."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, cast

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.text import plain

Raw = Mapping[str, Any]

MAX_LINK = 500
"""Letters of an address."""


def parsed(document: bytes, source: str, what: str) -> Any:
    """The answer. FeedError where it is not JSON, or says that it is an error."""
    try:
        found: Any = json.loads(document.decode("utf-8-sig"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise FeedError(f"{source}: is no {what} (JSON): {plain(str(error))[:120]}.") from None
    if problem := table(found).get("error"):
        raise FeedError(f"{source}: is no {what}: {plain(str(problem))[:120]}.")
    return found


def table(value: Any) -> Raw:
    """Names and values."""
    return cast(Raw, value) if isinstance(value, dict) else {}


def array(value: Any) -> list[Any]:
    """Values in their order."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: Any) -> str:
    """Letters as they came; ``plain`` makes them safe to show."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """A whole number that is not negative."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def day(value: Any) -> date | None:
    """The day that a time in ISO 8601 begins with."""
    try:
        return date.fromisoformat(text(value)[:10])
    except ValueError:
        return None


def day_of_ms(value: Any) -> date | None:
    """The day of a time in milliseconds since 1970."""
    number = count(value)
    try:
        return datetime.fromtimestamp(number / 1000.0, UTC).date() if number else None
    except (ValueError, OverflowError, OSError):
        return None


def web(value: Any) -> str:
    """An address that a browser may open without harm; empty where it is another."""
    found = plain(text(value))
    return found if found.startswith(("https://", "http://")) and len(found) <= MAX_LINK and " " not in found else ""


def names(values: Any, key: str) -> tuple[str, ...]:
    """One name of each table of an array, such as those of authors."""
    return tuple(name for one in array(values) if (name := plain(text(table(one).get(key)))))

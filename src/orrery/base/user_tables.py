"""Tables of a user's file, checked one by one: what is there is of its kind, in number, known and named apart."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from orrery.base.errors import ScenarioError, shown


def checked_table(raw: Any, where: str, example: str) -> Mapping[str, Any]:
    """The table that a value is; ``example`` ends the message where it is none."""
    if not isinstance(raw, dict):
        raise ScenarioError(f"{where}: got {shown(raw)}; write a table{example}.")
    return cast("Mapping[str, Any]", raw)


def checked_list(table: Mapping[str, Any], key: str, most: int, where: str) -> list[Any]:
    """The 1 to ``most`` tables of a key, not looked into."""
    raw = table.get(key)
    found = cast("list[Any]", raw) if isinstance(raw, list) else []
    if not 0 < len(found) <= most:
        raise ScenarioError(f"{where}: {key}: got {shown(cast(Any, raw))}; write 1 to {most:,} tables.")
    return found


def check_keys(table: Mapping[str, Any], keys: Collection[str], where: str) -> None:
    """Refuse a key that means nothing."""
    if other := [key for key in table if key not in keys]:
        raise ScenarioError(f"{where}: there is no {shown(other[0])}; write any of {', '.join(sorted(keys))}.")


def check_names_differ(names: Sequence[str], where: str) -> None:
    """Refuse two of one name."""
    if repeated := sorted({one for one in names if names.count(one) > 1}):
        raise ScenarioError(f"{where}: two are called {repeated[0]!r}; give each a name of its own.")

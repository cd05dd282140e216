"""JSON that fits a schema, written from its beginning on; nothing else is meant by it.

Every keyword that limits a value is either obeyed while it is written or refused by name, so a finished document fits;
of ``oneOf`` one branch is obeyed, and whether another would hold too is not looked at.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import chain
from math import ceil, floor, inf
from typing import Any, cast

import numpy as np

from orrery.emulator.refusal import RequestError
from orrery.emulator.words import VOCABULARY

Schema = Mapping[str, Any]

MAX_LETTERS = 2**17
"""Largest number of letters of one document: at worst it takes two tenths of a second, and everybody else waits."""

MAX_DEPTH, MAX_NAMES = 48, 1000
DEEP = 4
"""From this depth on, what need not be there is left out, and of several forms the flattest is taken."""

SPREAD = 3
"""A free length is drawn from the least one up to so many more."""

REFUSED = (
    "pattern",
    "not",
    "if",
    "contains",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "$dynamicRef",
)
"""Keywords that cannot be met while a value is written."""

NOTES = ("title", "description", "default", "examples", "$defs", "definitions", "$schema", "$id", "$comment")
FLAT = ("null", "boolean", "integer", "number", "string")

FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "one@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
TELLING = {
    "object": ("properties", "required", "additionalProperties", "minProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
"""Keywords that tell a kind where none is named."""

_WORDS = VOCABULARY.split()


class _Full(Exception):
    """Enough has been written."""


class _Writer:
    """A document under way, of at most so many letters."""

    def __init__(self, root: Schema, draws: np.random.Generator, most_letters: int, field: str) -> None:
        self._root, self._draws, self._left, self._field = root, draws, most_letters, field
        self.parts: list[str] = []

    def put(self, text: str) -> None:
        """Write on."""
        self.parts.append(text)
        self._left -= len(text)
        if self._left < 0:
            raise _Full

    def refuse(self, why: str) -> RequestError:
        """Say what of the schema cannot be."""
        return RequestError(400, f"{self._field}: {why[:200]}.", self._field)

    def value(self, schema: Any, depth: int = 0) -> None:
        """Write one value."""
        if depth > MAX_DEPTH:
            raise self.refuse(f"nests deeper than {MAX_DEPTH} levels")
        found = self._resolved(schema, depth)
        if "const" in found or "enum" in found:
            values = [found["const"]] if "const" in found else self._list(found["enum"], "enum")
            self.put(_plain(values[int(self._draws.integers(len(values)))]))
            return
        kind = self._kind(found, depth)
        if kind == "object":
            self._object(found, depth)
        elif kind == "array":
            self._array(found, depth)
        elif kind == "string":
            self.put(_plain(self._string(found)))
        elif kind in ("integer", "number"):
            self.put(_plain(self._number(found, kind == "integer")))
        else:
            self.put("null" if kind == "null" else ("false", "true")[int(self._draws.integers(2))])

    def _list(self, value: Any, name: str) -> list[Any]:
        if not isinstance(value, list) or not value:
            raise self.refuse(f"{name} is to be a list with something in it")
        return cast(list[Any], value)

    def _resolved(self, schema: Any, depth: int) -> dict[str, Any]:
        """A schema with its references, parts and first alternatives taken in."""
        found: Any = schema
        for _ in range(MAX_DEPTH):
            if found is True:
                return {}
            if not isinstance(found, Mapping):
                raise self.refuse("holds a schema that no value fits, or that is none")
            known = dict(cast(Schema, found))
            if "$ref" in known:
                found = self._joined(self._target(known.pop("$ref")), known)
            elif "allOf" in known:
                found = known
                for part in self._list(known.pop("allOf"), "allOf"):
                    found = self._joined(part, cast(dict[str, Any], found))
            elif "anyOf" in known or "oneOf" in known:
                name = "anyOf" if "anyOf" in known else "oneOf"
                found = self._joined(self._branch(self._list(known.pop(name), name), depth), known)
            else:
                return self._checked(known)
        raise self.refuse("goes round in circles")

    def _checked(self, found: dict[str, Any]) -> dict[str, Any]:
        for name in REFUSED:
            if name in found:
                raise self.refuse(f"{name} is not emulated")
        return found

    def _joined(self, part: Any, rest: dict[str, Any]) -> dict[str, Any]:
        """Both schemas at once; notes about them are let go."""
        if part is True:
            return rest
        if not isinstance(part, Mapping):
            raise self.refuse("holds a schema that no value fits, or that is none")
        found = dict(cast(Schema, part))
        for name, value in rest.items():
            if name in ("required", "properties") and name in found:
                both = (found[name], value)
                is_rows = name == "required" and all(isinstance(x, list) for x in both)
                if not is_rows and not all(isinstance(x, dict) for x in both):
                    raise self.refuse(f"{name} is of the wrong kind")
                found[name] = [*found[name], *value] if is_rows else {**found[name], **value}
            elif name in NOTES or found.get(name, value) == value:
                found[name] = value
            else:
                raise self.refuse(f"two values of {name} at once are not emulated")
        return found

    def _target(self, ref: Any) -> Any:
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise self.refuse("$ref goes elsewhere; only #/… within the schema is read")
        found: Any = self._root
        for name in ref[1:].split("/")[1:]:
            key = name.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = cast(Schema, found)[key]
            elif isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(cast(list[Any], found)):
                found = cast(list[Any], found)[int(key[:9])]
            else:
                raise self.refuse(f"$ref {ref} is not there")
        return found

    def _branch(self, branches: list[Any], depth: int) -> Any:
        """The first alternative; deep down, the first that holds no other value."""
        flat: list[Any] = [b for b in branches if isinstance(b, Mapping) and cast(Schema, b).get("type") in FLAT]
        return flat[0] if flat and depth >= DEEP else branches[0]

    def _kind(self, found: Schema, depth: int) -> str:
        given = found.get("type")
        kinds: list[Any] = cast(list[Any], given) if isinstance(given, list) else [given]
        if given is None:
            kinds = [k for k, names in TELLING.items() if any(n in found for n in names)] or ["string"]
        flat = [k for k in kinds if k in FLAT]
        kind = flat[0] if flat and depth >= DEEP else (kinds or [None])[0]
        if kind not in (*FLAT, "object", "array"):
            raise self.refuse(f"type {kind!r} is none of JSON")
        return cast(str, kind)

    def _count(self, found: Schema, least_name: str, most_name: str, free: int) -> int:
        """A length within its limits; 0 to ``free`` more than the least where nothing more is said."""
        least, most = found.get(least_name, 0), found.get(most_name)
        for name, value in ((least_name, least), (most_name, 0 if most is None else most)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise self.refuse(f"{name} is to be a number of 0 or more")
        if most is not None and most < least:
            raise self.refuse(f"{least_name} is more than {most_name}")
        top = least + free if most is None else min(most, least + free)
        spread: int = top - least
        return min(least, 2**40) if spread <= 0 else least + int(self._draws.integers(spread + 1))

    def _object(self, found: Schema, depth: int) -> None:
        fields, more = found.get("properties", {}), found.get("additionalProperties", True)
        needed = found.get("required", [])
        if not isinstance(fields, Mapping) or not isinstance(needed, list):
            raise self.refuse("properties is to be an object, and required a list")
        if len(cast(Schema, fields)) + len(cast(list[Any], needed)) > MAX_NAMES:
            raise self.refuse(f"names more than {MAX_NAMES} properties of one object")
        properties = dict(cast(Schema, fields))
        missing = [str(n) for n in dict.fromkeys(map(str, cast(list[Any], needed))) if n not in properties]
        least, most = self._count(found, "minProperties", "maxProperties", 0), found.get("maxProperties", 2**40)
        names = [n for n in properties if n in needed] + missing
        optional = [n for n in properties if n not in needed] if depth < DEEP else []
        names = [n for n in properties if n in needed or n in optional[: max(0, most - len(names))]] + missing
        names += [n for n in properties if n not in names][: max(0, least - len(names))]
        num_extra = max(0, least - len(names))
        if len(names) > most or ((missing or num_extra) and more is False):
            raise self.refuse("an object with all that is required cannot be")
        extra = (f"more{k}" for k in range(num_extra))
        if not names and not num_extra and not depth and "properties" not in found and most and more is not False:
            extra = iter(["answer"])
        self._rows("{", "}", ((f"{_plain(n)}:", properties.get(n, more)) for n in chain(names, extra)), depth)

    def _array(self, found: Schema, depth: int) -> None:
        firsts, rest = found.get("prefixItems", []), found.get("items", True)
        if not isinstance(firsts, list):
            raise self.refuse("prefixItems is to be a list")
        heads = cast(list[Any], firsts)
        count = self._count(found, "minItems", "maxItems", SPREAD if depth < DEEP else 0)
        if rest is False:
            count = min(count, len(heads))
        if found.get("uniqueItems") and count > 1:
            if found.get("minItems", 0) > 1:
                raise self.refuse("uniqueItems of two and more is not emulated")
            count = 1
        if count < found.get("minItems", 0):
            raise self.refuse("an array with so many items cannot be")
        self._rows("[", "]", (("", heads[k] if k < len(heads) else rest) for k in range(count)), depth)

    def _rows(self, start: str, end: str, rows: Iterable[tuple[str, Any]], depth: int) -> None:
        self.put(start)
        for k, (name, schema) in enumerate(rows):
            self.put(f",{name}" if k else name)
            self.value(schema, depth + 1)
        self.put(end)

    def _string(self, found: Schema) -> str:
        kind = found.get("format")
        if isinstance(kind, str) and kind in FORMATS:
            text = FORMATS[kind]
            if not found.get("minLength", 0) <= len(text) <= found.get("maxLength", len(text)):
                raise self.refuse(f"no {kind} of that length is known")
            return text
        length = self._count(found, "minLength", "maxLength", 8 * SPREAD)
        places: list[int] = self._draws.integers(len(_WORDS), size=min(length, self._left) // 2 + 1).tolist()
        text = " ".join(_WORDS[k] for k in places)
        return (text + "a" if length and text[length - 1 : length] == " " else text)[:length]

    def _number(self, found: Schema, is_whole: bool) -> float:
        """A multiple of the step, of the first that are within the limits."""
        step = self._limit(found, "multipleOf", 1 if is_whole else 0.5)
        if step <= 0 or (is_whole and step != int(step)):
            raise self.refuse("multipleOf is to be more than 0, and whole for integers")
        lows = [self._limit(found, n, -inf) for n in ("minimum", "exclusiveMinimum")]
        highs = [self._limit(found, n, inf) for n in ("maximum", "exclusiveMaximum")]
        if "multipleOf" not in found and not is_whole and max(lows) > -inf and min(highs) < inf:
            step = (min(highs) - max(lows)) / 4 or 1.0
            value = max(lows) + step if min(highs) > max(lows) else max(lows)
            return self._within(value, lows, highs)
        low = max(
            ceil(lows[0] / step) if lows[0] > -inf else -inf, floor(lows[1] / step) + 1 if lows[1] > -inf else -inf
        )
        high = min(
            floor(highs[0] / step) if highs[0] < inf else inf, ceil(highs[1] / step) - 1 if highs[1] < inf else inf
        )
        first = low if low > -inf else min(high - SPREAD, 0)
        spread = int(min(high - first, 100 if low == -inf == -high else SPREAD))
        count = int(first) + (int(self._draws.integers(spread + 1)) if spread > 0 else 0)
        return self._within(count * (int(step) if is_whole else step), lows, highs)

    def _limit(self, found: Schema, name: str, free: float) -> float:
        value = found.get(name, free)
        if isinstance(value, bool) or not isinstance(value, int | float) or (abs(value) > 2**53 and name in found):
            raise self.refuse(f"{name} is to be a number of at most 2^53")
        return value

    def _within(self, value: float, lows: list[float], highs: list[float]) -> float:
        if not (lows[0] <= value <= highs[0] and lows[1] < value < highs[1]):
            raise self.refuse("no number is within its limits")
        return value


def document(schema: Schema, draws: np.random.Generator, most_letters: int, field: str) -> str:
    """A value that fits the schema, as JSON; its beginning where it is longer than ``most_letters``."""
    writer = _Writer(schema, draws, min(most_letters, MAX_LETTERS), field)
    try:
        writer.value(schema)
    except (OverflowError, RecursionError):
        raise writer.refuse("holds a number that is too large, or nests too deeply") from None
    except _Full:
        if most_letters > MAX_LETTERS:
            raise writer.refuse(f"asks for more than {MAX_LETTERS:,} letters") from None
    return "".join(writer.parts)


def _plain(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))

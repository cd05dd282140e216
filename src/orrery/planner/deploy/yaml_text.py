"""Plain data as YAML: mappings, lists, texts in quotes where they need them, numbers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*(?::[A-Za-z0-9_.-]+)?")
WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""Texts that a reader would take for something else."""


def yaml_text(*documents: Mapping[str, Any]) -> str:
    """Return the documents, one after another."""
    return "---\n".join("\n".join(_lines(document, 0)) + "\n" for document in documents)


def _lines(value: Any, depth: int) -> Iterator[str]:
    pad = "  " * depth
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            if _is_block(item):
                yield f"{pad}{_scalar(key)}:"
                yield from _lines(item, depth + (not isinstance(item, list)))
            else:
                yield f"{pad}{_scalar(key)}: {_scalar(item)}"
        return
    for item in cast("Sequence[Any]", value):
        if _is_block(item):
            first, *rest = _lines(item, depth + 1)
            yield f"{pad}- {first.lstrip()}"
            yield from rest
        else:
            yield f"{pad}- {_scalar(item)}"


def _is_block(value: Any) -> bool:
    return isinstance(value, Mapping | list) and bool(cast("Any", value))


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if PLAIN.fullmatch(value) and value.casefold() not in WORDS else json.dumps(value)
    return json.dumps(value)

"""From the form beside a design to its settings, and back into the form."""

from collections.abc import Mapping
from typing import Any

from orrery.web.address import Query, read_by, settings_of
from orrery.web.parameters import Parameters

LOADS = ("concurrency", "batch", "rate", "users")
"""How much is asked of it; one of them, or a trace."""

DEFAULTS: Mapping[str, Any] = {"model": "llama-3.1-8b", "device": "h100-sxm"}
LENGTHS: Mapping[str, Any] = {"input_tokens": "1024", "output_tokens": "256"}
LOAD: Mapping[str, Any] = {"concurrency": "32"}
"""Defaults of a design that was not asked for in full; they come to stand in the address."""


ESTIMATED = read_by({"estimate"})
"""Settings that an estimate reads."""

PARAMETERS = Parameters(words={"load_kind": LOADS}, checked=frozenset({"load"}), settings=ESTIMATED)


def design_settings(query: Query) -> dict[str, Any]:
    """The settings of an estimate, whole; those that an estimate does not read are left out."""
    found = {k: v for k, v in settings_of(query).items() if k in ESTIMATED}
    if (kind := query.get("load_kind", "")) in LOADS and (load := query.get("load", "").strip()):
        found = {k: v for k, v in found.items() if k not in LOADS} | {kind: load}
    settings = {**DEFAULTS, **found}
    if "trace" not in settings:
        settings = {**settings, **{k: v for k, v in LENGTHS.items() if k not in settings}}
        settings |= {} if any(name in settings for name in LOADS) else LOAD
    return settings


def load_of(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Which load there is, and how much of it; blank where the trace says it."""
    return next(((name, str(settings[name])) for name in LOADS if name in settings), ("", ""))

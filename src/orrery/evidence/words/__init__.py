"""The words that a paper file may use: inputs of a set-up, units and readings of a claim, kinds of papers.

Inputs are listed by theme, one file each beside this one, which is found because it exists: ``INPUTS`` maps a name,
with its unit, to what it says; ``UNITS``, where there is one, names further units of claims.
"""

from importlib import import_module
from pathlib import Path

READINGS = ("value", "mean", "up to", "at least", "less than", "about")
"""Meanings of a reported number."""

KINDS = ("technique", "system", "measurement", "theory", "survey", "model-release", "benchmark-dataset")
"""Kinds of contribution."""

FITS = ("core", "adjacent", "catalogue")
"""Relation to orrery's models: to be re-run, of use to it, or listed so that it can be found."""

BASE_UNITS = frozenset(
    {
        "ratio",
        "frac",
        "s",
        "w",
        "bytes",
        "flops",
        "tokens",
        "tokens_per_s",
        "tokens_per_s_per_device",
        "requests_per_s",
        "requests_per_s_per_device",
        "requests_per_s_per_usd_per_h",
        "bytes_per_request",
        "j_per_token",
        "j",
        "usd",
        "parameters",
        "models",
        "sms",
        "bytes_per_s",
        "flops_per_s",
        "devices",
        "workers",
        "algorithms",
        "states",
        "rules",
        "functions",
        "hz",
        "m2",
        "bits",
        "elements",
        "classes",
        "generations",
        "counters",
        "points",
        "db",
        "frames_per_s",
        "images_per_s",
        "samples_per_s",
        "tokens_per_j",
        "samples_per_j",
        "flops_per_s_per_w",
        "flops_per_byte",
        "macs_per_cycle",
        "cycles",
        "operations",
        "samples",
        "images",
        "pixels",
        "queries_per_s",
        "keys_per_s",
        "steps",
        "layers",
        "experts",
        "problems",
        "score",
        "flops_per_s_per_m2",
        "architectures",
        "orders_of_magnitude",
    }
)


def _themes() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


_MODULES = [import_module(f"{__name__}.{theme}") for theme in _themes()]

INPUTS: dict[str, str] = {name: meaning for module in _MODULES for name, meaning in module.INPUTS.items()}
"""Every line that a set-up may have, and what it says. Units are in the names; lists are text with commas."""

UNITS = BASE_UNITS.union(*(getattr(module, "UNITS", frozenset[str]()) for module in _MODULES))
"""Units of a claim. ``points`` are percentage points, as a fraction; ``score`` has a scale of its own."""

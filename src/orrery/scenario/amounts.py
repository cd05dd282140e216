"""Numbers as people type them: ``1k``, ``1.5M``, ``1,000``, ``200ms``, ``2s``, ``64GiB``, ``90%``.

The name of a setting says which units it takes: seconds where it ends in ``_s``, bytes in ``_bytes``, bytes per second
in ``_bytes_per_s``, watts in ``_w``; anything else is a count, which takes the multipliers alone. ``k`` and ``K`` are
1,000 and ``M`` is 1,000,000; the binary ones are ``Ki`` (1,024), ``Mi``, ``Gi`` and ``Ti``.
"""

import re

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_COUNTS = {**_DECIMAL, **_BINARY, "B": 1e9}
_BYTES = {prefix + sign: scale for prefix, scale in {**_DECIMAL, **_BINARY}.items() for sign in ("", "B")}
_RATES = {**_BYTES, **{f"{unit}/s": scale for unit, scale in _BYTES.items() if unit.endswith("B")}}

_WATTS = {prefix + sign: scale for prefix, scale in _DECIMAL.items() for sign in ("", "W")}

_TEXT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?)\s*([A-Za-zµ/%]*)\s*")


def amount(text: str, name: str, most: float = float("inf")) -> float | None:
    """The number that ``text`` is for the setting ``name``; None where it is no number with a unit of that kind.

    Shares (settings of at most 1) may be in percent.

    >>> amount("1.5M", "num_requests"), amount("200ms", "think_s"), amount("64GiB", "host_cache_bytes")
    (1500000.0, 0.2, 68719476736.0)
    >>> amount("200ms", "input_tokens") is None, amount("90%", "gpu_memory_utilization", most=1.0)
    (True, 0.9)
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    number, unit = float(match[1].replace(",", "")), match[2]
    if unit == "%":
        return number / 100.0 if most <= 1.0 else None
    scale = units(name).get(unit, 1.0 if unit == "" else None)
    if scale is None or unit == "":
        return None if scale is None else number
    return round(number * scale, 6) if scale >= 1.0 else number * scale


def units(name: str) -> dict[str, float]:
    """The units that a setting takes, with what each is worth."""
    if name.endswith("_bytes_per_s"):
        return _RATES
    if name.endswith("_bytes"):
        return _BYTES
    if name.endswith("_w"):
        return _WATTS
    return _SECONDS if name.endswith("_s") and not name.endswith("_per_s") else _COUNTS


def milliseconds(text: str) -> float | None:
    """A limit of an objective: milliseconds, unless it has a unit of its own (``2s``)."""
    try:
        return float(text)
    except ValueError:
        found = amount(text, "limit_s")
    return found if found is None or text.strip()[-1:].isdigit() else found * 1e3

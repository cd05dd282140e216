"""SI inside, words outside.

Every number in orrery is a plain float in a base unit, and the last part of its name
says which one: ``memory_bandwidth_bytes_per_s``. Text is turned into such a number in
one place, here, and the name decides whether the text is acceptable.

>>> quantity("3.35 TB/s", name="memory_bandwidth_bytes_per_s")
3350000000000.0
>>> quantity("80 GiB", name="memory_capacity_bytes")
85899345920.0
>>> text(0.0123, "s")
'12.3 ms'
"""

import math
import re

UNIT_WORDS = frozenset({
    "s", "hz", "bytes", "flops", "j", "w", "usd", "m2", "c", "tokens", "frac", "ratio", "bits", "db",
})  # fmt: skip
"""Last words that a float's name may end in; ``a_per_b`` chains them."""

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BYTES = _DECIMAL | _BINARY


def _atoms() -> dict[str, tuple[str, float]]:
    """Unit symbol -> (word used in names, factor to the base unit)."""
    atoms = {
        "min": ("s", 60.0), "h": ("s", 3600.0), "day": ("s", 86400.0), "$": ("usd", 1.0), "USD": ("usd", 1.0),
        "token": ("tokens", 1.0), "tokens": ("tokens", 1.0), "mm2": ("m2", 1e-6), "%": ("frac", 0.01),
    }  # fmt: skip
    for prefixes, symbol, word, factor in (
        (_BYTES, "B", "bytes", 1.0),
        (_BYTES, "b", "bytes", 1 / 8),
        (_DECIMAL, "FLOP", "flops", 1.0),
        (_DECIMAL | {"m": 1e-3}, "W", "w", 1.0),
        (_DECIMAL, "Hz", "hz", 1.0),
        (_DECIMAL | _SMALL, "J", "j", 1.0),
        (_SMALL, "s", "s", 1.0),
    ):
        atoms |= {prefix + symbol: (word, scale * factor) for prefix, scale in prefixes.items()}
    return atoms


_ATOMS = _atoms()
_TEXT = re.compile(r"^\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([^\s/]+?)(?:/(\S+))?\s*$")


def quantity(text: str, *, name: str) -> float:
    """Read ``text`` as the quantity called ``name``, in base units."""
    match = _TEXT.match(text)
    number, over, under = match.groups() if match else ("", "", None)
    if over not in _ATOMS or (under and under not in _ATOMS):
        raise ValueError(f"{name}: cannot read {text!r}; write a number and a unit, such as '3.35 TB/s'.")
    word, scale = _ATOMS[over]
    if under:
        below, divisor = _ATOMS[under]
        word, scale = f"{word}_per_{below}", scale / divisor
    if not name.endswith(f"_{word}"):
        raise ValueError(f"{name}: {text!r} is in {word}, but the name asks for another unit.")
    return float(number) * scale


_SYMBOLS = {"bytes": "B", "flops": "FLOP", "j": "J", "w": "W", "hz": "Hz", "s": "s"}


def text(value: float, unit: str, digits: int = 3) -> str:
    """``value`` in words a person reads: ``text(2.5e9, "bytes")`` is ``'2.5 GB'``; counted things take no prefix."""
    if not math.isfinite(value) or value == 0 or unit not in _SYMBOLS:
        return f"{value:,.{digits}g} {unit}" if abs(value) < 1000 else f"{value:,.0f} {unit}"
    prefixes = _SMALL if unit in ("s", "j", "w") and abs(value) < 1 else {"": 1.0} if unit == "s" else _DECIMAL
    prefix, scale = min(prefixes.items(), key=lambda p: _distance(abs(value) / p[1]))
    return f"{value / scale:.{digits}g} {prefix}{_SYMBOLS[unit]}"


def _distance(mantissa: float) -> float:
    """How far a mantissa is from the readable range 1 to 1000."""
    return 0.0 if 1 <= mantissa < 1000 else abs(math.log10(mantissa) - 1.5)

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

UNIT_WORDS = frozenset(
    {
        "s",
        "hz",
        "bytes",
        "flops",
        "j",
        "w",
        "usd",
        "m2",
        "g",
        "c",
        "tokens",
        "frac",
        "ratio",
        "bits",
        "db",
        "px",
    }
)
"""Last words that a float's name may end in; ``a_per_b`` chains them."""

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12}
MICRO = ("µ", "\N{GREEK SMALL LETTER MU}")
"""Letters that people write for the millionth part beside ``u``; the first is the one that is shown."""

_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_BYTES = _DECIMAL | _BINARY


def _atoms() -> dict[str, tuple[str, float]]:
    """Unit symbol -> (word used in names, factor to the base unit)."""
    atoms = {
        "min": ("s", 60.0),
        "h": ("s", 3600.0),
        "day": ("s", 86400.0),
        "$": ("usd", 1.0),
        "USD": ("usd", 1.0),
        "token": ("tokens", 1.0),
        "tokens": ("tokens", 1.0),
        "mm2": ("m2", 1e-6),
        "g": ("g", 1.0),
        "kg": ("g", 1e3),
        "%": ("frac", 0.01),
    }
    for prefixes, symbol, word, factor in (
        (_BYTES, "B", "bytes", 1.0),
        (_BYTES, "b", "bytes", 1 / 8),
        (_DECIMAL, "FLOP", "flops", 1.0),
        (_DECIMAL | {"m": 1e-3}, "W", "w", 1.0),
        (_DECIMAL, "Hz", "hz", 1.0),
        (_DECIMAL | _SMALL, "J", "j", 1.0),
        (_SMALL | dict.fromkeys(MICRO, 1e-6), "s", "s", 1.0),
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


_SYMBOLS = {"bytes": "B", "flops": "FLOP", "ops": "OP", "j": "J", "w": "W", "hz": "Hz", "s": "s"}
_TIMES = "\N{MULTIPLICATION SIGN}"


def text(value: float, unit: str, digits: int = 3) -> str:
    """``value`` in words a person reads: ``text(2.5e9, "bytes")`` is ``'2.5 GB'``; counted things take no prefix."""
    if not math.isfinite(value) or value == 0 or unit not in _SYMBOLS:
        return f"{value:,.{digits}g} {unit}" if abs(value) < 1000 else f"{value:,.0f} {unit}"
    prefix, scale = prefix_of(value, _SYMBOLS[unit])
    number = value / scale
    message = f"{number:.{digits}g}" if abs(number) < 1000 else _plain(number, digits)  # long times have no prefix
    return f"{message} {with_prefix(prefix, _SYMBOLS[unit])}"


def si(value: float, unit: str = "", digits: int = 3) -> str:
    """``value`` with a prefix on everything, counted things too: ``si(3400, "tokens/s")`` is ``'3.4 k tokens/s'``.

    A unit is a symbol or the words of a name: ``B/s`` and ``bytes_per_s`` are the same; shares are told in percent.
    """
    if not math.isfinite(value):
        return "no number" if math.isnan(value) else f"{'-' if value < 0 else ''}∞ {symbol(unit)}".rstrip()
    if unit == "frac":
        return f"{_plain(100 * value, digits)} %"
    if unit == "ratio":
        return f"{_plain(value, digits)} {_TIMES}"
    sign = symbol(unit)
    prefix, scale = prefix_of(value, sign.partition("/")[0], digits)
    number = _plain(value / scale, digits)
    if sign.startswith("$"):
        return f"{'-' if value < 0 else ''}${number.lstrip('-')}{' ' if prefix else ''}{prefix}{sign[1:]}"
    return f"{number} {with_prefix(prefix, sign)}".rstrip()


def percent(frac: float, decimals: int = 0, *, is_signed: bool = False) -> str:
    """A share in percent with a space before the sign, as SI writes it, to so many decimals; zero is never negative.

    >>> percent(0.308, 1), percent(0.5), percent(-0.25, is_signed=True), percent(-0.0004, 1)
    ('30.8 %', '50 %', '-25 %', '0.0 %')
    """
    return f"{100 * frac:{'+' if is_signed else ''}z.{decimals}f} %"


def symbol(unit: str) -> str:
    """The unit as it is written behind a number: ``bytes_per_s`` is ``B/s``, ``usd_per_h`` is ``$/h``."""
    words = unit.replace("_per_", "/").split("/")
    return "/".join({**_SYMBOLS, "usd": "$", "frac": "%", "ratio": _TIMES}.get(word, word) for word in words)


def with_prefix(prefix: str, sign: str) -> str:
    """``G`` and ``B/s`` are ``GB/s``; before words the prefix stands alone: ``k tokens/s``."""
    shown = MICRO[0] if prefix == "u" else prefix
    return f"{shown}{sign}" if sign.partition("/")[0] in _SYMBOLS.values() else f"{shown} {sign}".strip()


_LARGE = (("T", 1e12), ("B", 1e9), ("M", 1e6))
"""Suffixes by which people abbreviate counts, in place of an exponent."""


def figures(value: float, digits: int = 3) -> str:
    """A number as a person writes it: thousands set apart, millions abbreviated, never ``1.478e+04``.

    >>> figures(14780.4, 4), figures(2.5e9), figures(0.0123), figures(1e24)
    ('14,780', '2.5 B', '0.0123', '1e24')
    """
    if not math.isfinite(value):
        return f"{value}"
    size = abs(float(f"{value:.{digits}g}"))
    if 1e7 <= size < 1e15:
        letter, scale = next((letter, scale) for letter, scale in _LARGE if size >= scale)
        return f"{_plain(value / scale, digits)} {letter}"
    return _plain(value, digits).replace("e+", "e")


def _plain(number: float, digits: int) -> str:
    """Few digits, thousands set apart, and no exponent where a person would write none."""
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.0f}" if 10**digits <= abs(rounded) < 1e7 else f"{rounded:.{digits}g}"


def prefix_of(value: float, sign: str, digits: int = 3) -> tuple[str, float]:
    """The prefix that brings ``value`` between 1 and 1000, among those that the unit takes."""
    size = abs(float(f"{value:.{digits}g}"))
    larger = {"": 1.0} if sign == "s" else _DECIMAL
    prefixes = _SMALL if sign in ("s", "J", "W") and size < 1 else larger
    if not size:
        return "", 1.0
    readable = (p for p in prefixes.items() if 1 <= size / p[1] < 1000)
    return next(readable, None) or min(prefixes.items(), key=lambda p: _distance(size / p[1]))


def _distance(mantissa: float) -> float:
    """Distance of a mantissa from the middle of the readable range 1 to 1000."""
    return abs(math.log10(mantissa) - 1.5)

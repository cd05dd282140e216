"""Numbers, and values of inputs, as people write them."""

import re
from collections.abc import Sequence

from orrery.base.units import si, text

_SIZES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))
_HOUR_S, _DAY_S = 3600.0, 86400.0
_LARGEST = 1e15
"""From here on numbers are written as powers of ten."""

_NUMBER = re.compile(r"[0-9.]+(e[0-9]+)?")
_SHORT = frozenset({"e2e", "gpu", "kv", "moe", "mpi", "pim", "slo", "tbt", "tpot", "ttft"})
"""Words that are written in capitals."""


def amount(value: float, unit: str) -> str:
    """A number in a claim's unit: 18 GB, 1.2 trillion parameters, 52 %.

    >>> amount(18e9, "bytes"), amount(1.97e14, "flops_per_s"), amount(1.2e12, "parameters"), amount(0.52, "frac")
    ('18 GB', '197 TFLOP/s', '1.2 trillion parameters', '52 %')
    >>> amount(1862.3, "tokens_per_s"), amount(0.8449, "ratio"), amount(2.01e6, "s"), amount(9e3, "s")
    ('1,862 tokens/s', '0.845', '23.3 days', '2.5 hours')
    """
    if unit == "s" and abs(value) >= 2.0 * _HOUR_S:
        return f"{value / _HOUR_S:.3g} hours" if abs(value) < 2.0 * _DAY_S else f"{value / _DAY_S:.3g} days"
    head, *rest = unit.split("_per_")
    if head in ("bytes", "flops", "s", "j", "w", "hz"):
        return "/".join((text(value, head), *rest))
    if unit in ("frac", "points"):
        return si(value, "frac") if unit == "frac" else f"{100.0 * value:.3g} points"
    return f"{_count(value)} {_words(unit)}".rstrip()


def _count(value: float) -> str:
    """A plain number: 0.845, 1,860, 1.2 trillion, 1e+21."""
    for size, word in _SIZES:
        if size <= abs(value) < _LARGEST:
            return f"{value / size:.3g} {word}"
    return f"{value:,.0f}" if 1000.0 <= abs(value) < _LARGEST else f"{value:.3g}"


def _words(unit: str) -> str:
    """A unit as people write it; a plain number has none."""
    return "" if unit in ("ratio", "score") else unit.replace("_per_", "/").replace("_", " ")


def input_text(name: str, value: float | str | bool) -> str:
    """A value of a set-up's input.

    >>> input_text("link_bytes_per_s", 25e9), input_text("input_mean_tokens", 893.0), input_text("hit_frac", 0.25)
    ('25 GB/s', '893 tokens', '25 %')
    >>> [input_text("flops_swept", word) for word in ("62.5e3", "1e21", "64x8x16")]
    ['62,500', '1e+21', '64x8x16']
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _count(float(value)) if _NUMBER.fullmatch(value) else value
    words = name.split("_")
    if words[-2:] == ["per", "s"] and words[-3] in ("bytes", "flops", "j"):
        return f"{text(value, words[-3])}/s"
    if words[-2:] == ["per", "s"]:
        return _count(value)  # its name says that it is a second's
    if words[-1] == "frac":
        return si(value, "frac")
    if words[0] not in ("num", "max") and words[-1] in ("bytes", "s", "w", "hz", "j", "flops", "tokens", "usd"):
        return text(value, words[-1])
    return _count(value)


def input_name(name: str) -> str:
    """Name of an input, without its unit.

    >>> [input_name(n) for n in ("link_bytes_per_s", "num_experts", "num_batch", "input_mean_tokens", "hit_frac")]
    ['link bandwidth', 'number of experts', 'batch', 'input mean tokens', 'hit share']
    >>> input_name("num_requests_per_s"), input_name("slo_tpot_s")
    ('requests a second', 'SLO TPOT')
    """
    if name.endswith("_per_s") and not name.endswith("_bytes_per_s"):
        return _shortened([*name.removesuffix("_per_s").removeprefix("num_").split("_"), "a", "second"])
    words = name.removesuffix("_swept").removesuffix("_per_s").split("_")
    if name.endswith("_bytes_per_s"):
        words = [*(word for word in words[:-1] if word != "bandwidth"), "bandwidth"]
    elif words[-1] == "frac":
        words = [*words[:-1], "share"]
    elif words[-1] in ("s", "w", "hz", "j", "usd") and len(words) > 1:
        words = words[:-1]
    if words[0] == "max":
        words = ["most", *(word for word in words[1:] if word != "num")]
    if words[0] == "num":
        words = ["number", "of", *words[1:]] if words[-1].endswith("s") else words[1:]
    return _shortened(words)


def metric_name(metric: str) -> str:
    """A claim's metric as people write it.

    >>> metric_name("ttft_reduction"), metric_name("throughput_ratio")
    ('TTFT reduction', 'throughput ratio')
    """
    return _shortened(metric.split("_"))


def _shortened(words: Sequence[str]) -> str:
    return " ".join(word.upper() if word in _SHORT else word for word in words)

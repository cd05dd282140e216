"""Numbers, and values of inputs, as people write them."""

from orrery.base.units import text
from orrery.evidence.judge.page import number

_SIZES = ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"))


def amount(value: float, unit: str) -> str:
    """A number in a claim's unit: 18 GB, 1.2 trillion parameters, 52 %.

    >>> amount(18e9, "bytes"), amount(1.97e14, "flops_per_s"), amount(1.2e12, "parameters"), amount(0.52, "frac")
    ('18 GB', '197 TFLOP/s', '1.2 trillion parameters', '52 %')
    """
    head, *rest = unit.split("_per_")
    if head in ("bytes", "flops", "s", "j", "w", "hz"):
        return "/".join((text(value, head), *rest))
    for size, word in _SIZES:
        if abs(value) >= size:
            return f"{number(value / size, 'ratio')} {word} {unit.replace('_per_', '/').replace('_', ' ')}"
    return number(value, unit)


def input_text(name: str, value: float | str | bool) -> str:
    """A value of a set-up's input.

    >>> input_text("link_bytes_per_s", 25e9), input_text("input_mean_tokens", 893.0), input_text("hit_frac", 0.25)
    ('25 GB/s', '893 tokens', '25 %')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    words = name.split("_")
    if words[-2:] == ["per", "s"] and words[-3] in ("bytes", "flops", "j"):
        return f"{text(value, words[-3])}/s"
    if words[-1] == "frac":
        return f"{100.0 * value:.3g} %"
    if words[0] not in ("num", "max") and words[-1] in ("bytes", "s", "w", "hz", "j", "flops", "tokens", "usd"):
        return text(value, words[-1])
    for size, word in _SIZES:
        if abs(value) >= size:
            return f"{value / size:.3g} {word}"
    return f"{value:.3g}" if abs(value) < 1000.0 else f"{value:,.0f}"


def input_name(name: str) -> str:
    """What an input is, without its unit.

    >>> [input_name(n) for n in ("link_bytes_per_s", "num_experts", "num_batch", "input_mean_tokens", "hit_frac")]
    ['link bandwidth', 'number of experts', 'batch', 'input mean tokens', 'hit share']
    """
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
    return " ".join(words)

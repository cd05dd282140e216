"""Formats as people type them: a registered name, or ELEMENT/SHARE:SCALE:RULE spelled out.

nvfp4                 the registered format
e3m2/32:ue8m0         FP6 in blocks of 32 with a power-of-two scale
int4/128:fp16         INT4 by groups of 128 with FP16 scales
uint4/128:fp16:zero   the same with a zero point
int4sym/16:e4m3/tensor   two levels: blocks of 16 with e4m3 scales, and an FP32 scale for the tensor
e4m3fn/none           the element alone, not scaled
e5m2                  an element alone is scaled by tensor, unless it has sixteen bits or is a posit
"""

from functools import cache

from orrery.base.errors import ScenarioError, UnknownName
from orrery.numerics.element import Element
from orrery.numerics.families.fixed import MAX_FP32_BITS, Fixed
from orrery.numerics.format import Format, Kind
from orrery.numerics.names import EXAMPLES, get_element, named_elements
from orrery.numerics.registry import find_format, known_formats
from orrery.numerics.scaling import Level, Rule, Scaling, ZeroPoint, read_share

RULES: dict[str, Rule] = {"amax": "amax", "floor": "floor", "ceil": "ceil", "extreme": "extreme"}
MIN_HIGHEST, MAX_HIGHEST = 2.0**-20, 2.0**64
"""Largest values of elements that a scale in FP32 can bring numbers to."""

ZERO_POINTS: dict[str, ZeroPoint] = {"zero": "integer", "minimum": "minimum"}


@cache
def parse_format(word: str) -> Format:
    """The format that ``word`` names or spells out."""
    plain = word.strip().casefold()
    if found := find_format(plain):
        return found
    if not plain or len(plain) > 100:
        raise ScenarioError(
            f"A format has 1 to 100 letters, got {len(plain)}; write one such as nvfp4 or int4/128:fp16."
        )
    name, *shares = plain.split("/")
    try:
        element = get_element(name)
    except UnknownName:
        raise UnknownName("format", word, (*known_formats(), *named_elements(), *EXAMPLES)) from None
    if isinstance(element, Fixed) and element.bits > MAX_FP32_BITS:
        raise ScenarioError(f"{word}: tensors are treated in FP32; write whole numbers of up to {MAX_FP32_BITS} bits.")
    scaling = _scaling(element, shares, word)
    return Format(name=plain, title=f"{name}, {_words(scaling)}", kind=_kind(element), element=element, scaling=scaling)


def _scaling(element: Element, shares: list[str], where: str) -> Scaling:
    if not shares:
        shares = ["tensor"] if element.prefers_scale else ["none"]
    if shares == ["none"]:
        return Scaling()
    levels: list[Level] = []
    rule: str = ""
    zero_point: ZeroPoint = ""
    for part in shares:
        share, *options = part.split(":")
        scale: Element | None = None
        for option in options:
            if option in RULES:
                rule = option
            elif option in ZERO_POINTS:
                zero_point = ZERO_POINTS[option]
            else:
                scale = None if option == "fp32" else _scale_element(option, where)
        levels.append(Level(share=read_share(share, where), scale=scale))
    _check(element, levels, rule, zero_point, where)
    is_power = levels[0].scale is not None and levels[0].scale.name == "ue8m0"
    return Scaling(levels=tuple(levels), rule=RULES[rule or ("floor" if is_power else "amax")], zero_point=zero_point)


def _scale_element(name: str, where: str) -> Element:
    try:
        return get_element(name)
    except UnknownName as unknown:
        raise ScenarioError(
            f"{where}: {name!r} is neither a scale nor an option; write an element such as ue8m0, e4m3fn or fp16, "
            "or floor, ceil, amax, zero."
        ) from unknown


def _check(element: Element, levels: list[Level], rule: str, zero_point: ZeroPoint, where: str) -> None:
    if len(levels) > 2:
        raise ScenarioError(f"{where}: {len(levels)} levels of scales; write one or two.")
    if not MIN_HIGHEST <= element.highest <= MAX_HIGHEST:
        raise ScenarioError(f"{where}: {element.name} goes up to {element.highest:g}, too far from 1 to scale in FP32.")
    if rule == "extreme" and not (isinstance(element, Fixed) and element.is_signed):
        raise ScenarioError(f"{where}: extreme goes with signed integers, such as int4/32:fp16:extreme.")
    if len(levels) == 2 and levels[1].share != "tensor":
        raise ScenarioError(f"{where}: the outer level is shared by the tensor; write /tensor last.")
    if len(levels) == 2 and levels[0].scale is None:
        raise ScenarioError(
            f"{where}: an FP32 scale inside another buys nothing; write an element, such as /16:e4m3/tensor."
        )
    if zero_point and (len(levels) == 2 or not isinstance(element, Fixed) or element.is_signed):
        raise ScenarioError(
            f"{where}: zero points go with unsigned integers and one level, such as uint4/128:fp16:zero."
        )


def _kind(element: Element) -> Kind:
    name = type(element).__name__
    return "float" if name == "Minifloat" else "integer" if name in ("Fixed", "Bipolar") else "lookup"


def _words(scaling: Scaling) -> str:
    if not scaling.levels:
        return "not scaled"
    levels = [
        f"one {level.scale.name if level.scale else 'fp32'} scale for {_sharers(level)}" for level in scaling.levels
    ]
    return " and ".join(levels) + (", with a zero point" if scaling.zero_point else "")


def _sharers(level: Level) -> str:
    return f"the {level}" if level.share == "tensor" else f"a {level}" if level.share == "row" else str(level)

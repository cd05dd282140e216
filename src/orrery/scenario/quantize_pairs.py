"""Pairs of formats, of weights and of activations: the best recipe of each, and those that no other pair beats."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from orrery.base.errors import OutOfRange
from orrery.hardware.lut_count import mac_luts
from orrery.numerics.format import Format
from orrery.numerics.parse import parse_format
from orrery.scenario.format_circuits import SUM_TERMS
from orrery.scenario.quantize_layers import Measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Formats of one layer's weights and activations with the recipe that keeps most of its output."""

    tensor: str
    weights: str
    activations: str
    recipe: str
    output_sqnr_db: float
    bits: float  # of a weight and an activation together
    num_luts: int | None  # of one multiply-accumulate; None: not asked for, or not counted
    is_best_of_bits: bool  # no pair keeps more with as few bits
    is_best_of_luts: bool


def pairs_of(measured: Sequence[Measurement], *, counts_luts: bool, sum_terms: int | None) -> tuple[Pair, ...]:
    """Every pair that was measured, layer by layer, cheapest first."""
    best: dict[tuple[str, str, str], Measurement] = {}
    for m in measured:
        key = (m.tensor, m.format, m.activations)
        if key not in best or m.output_sqnr_db > best[key].output_sqnr_db:
            best[key] = m
    names = {name for _, *pair in best for name in pair}
    formats = {name: parse_format(name) for name in names}
    found = {key: _pair(m, formats, counts_luts, sum_terms) for key, m in best.items()}
    tensors = dict.fromkeys(tensor for tensor, _, _ in found)
    return tuple(p for tensor in tensors for p in _marked([x for x in found.values() if x.tensor == tensor]))


def _pair(m: Measurement, formats: Mapping[str, Format], counts_luts: bool, sum_terms: int | None) -> Pair:
    weights, activations = formats[m.format], formats[m.activations]
    return Pair(
        tensor=m.tensor,
        weights=m.format,
        activations=m.activations,
        recipe=m.recipe,
        output_sqnr_db=m.output_sqnr_db,
        bits=weights.bits_per_element + activations.bits_per_element,
        num_luts=_luts(weights, activations, sum_terms or SUM_TERMS) if counts_luts else None,
        is_best_of_bits=False,
        is_best_of_luts=False,
    )


def _luts(weights: Format, activations: Format, sum_terms: int) -> int | None:
    """Tables of the pair's elements, scales aside; None where none are counted, as for an integer with a float."""
    if weights.element is None or activations.element is None:
        return None
    try:
        return mac_luts(weights.element, activations.element, sum_terms).total
    except OutOfRange:
        return None


def _marked(pairs: Sequence[Pair]) -> list[Pair]:
    by_bits = front(pairs, lambda p: p.bits)
    by_luts = front([p for p in pairs if p.num_luts is not None], lambda p: float(p.num_luts or 0))
    return [
        Pair(
            **{name: getattr(p, name) for name in Pair.__slots__ if not name.startswith("is_")},
            is_best_of_bits=p in by_bits,
            is_best_of_luts=p in by_luts,
        )
        for p in sorted(pairs, key=lambda p: (p.bits, -p.output_sqnr_db))
    ]


def front(pairs: Sequence[Pair], cost: Callable[[Pair], float]) -> list[Pair]:
    """Pairs that keep more than every cheaper one, cheapest first."""
    best, found = float("-inf"), list[Pair]()
    for pair in sorted(pairs, key=lambda p: (cost(p), -p.output_sqnr_db)):
        if pair.output_sqnr_db > best:
            best = pair.output_sqnr_db
            found.append(pair)
    return found

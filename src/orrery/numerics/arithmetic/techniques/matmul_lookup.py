"""Tables instead of multipliers: the answers of a few activations to all patterns of one-bit weights, made once.

A bit b of a weight counts 2 b - 1, so a group of g activations has 2^g answers of which half are the other half's
negatives: a table holds 2^(g - 1), and a pattern whose highest bit is set reads the table at its complement and turns
the sign. Weights of p bits look up once a bit and shift; the table is shared by all outputs of a token. LUT Tensor
Core, arXiv 2408.06003.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.matmul import Counts, FewBitWeights, Floats, Product, checked


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKnobs:
    """Activations that share a table."""

    table_inputs: int = 4

    def __post_init__(self) -> None:
        check_range(self, "table_inputs", 1, 12)


def rule(activations: Floats, weights: FewBitWeights, knobs: LookupKnobs) -> Product:
    """Build a table for every few activations, read it for every bit of every output, shift, add, scale."""
    a, g, p = checked(activations, weights), knobs.table_inputs, weights.bits
    (tokens, inputs), (outputs, groups) = a.shape, weights.scales.shape
    if weights.group_elements % g:
        raise ScenarioError(f"tables of {g} inputs do not divide groups of {weights.group_elements}; write a divisor.")
    tables = a.reshape(tokens, inputs // g, g) @ _patterns(g).T  # (tokens, tables, entries)
    place = np.arange(tables.shape[1], dtype=np.intp)
    sums = np.zeros((tokens, outputs, groups))
    for bit in range(p):
        index = ((weights.codes >> bit) & 1).reshape(outputs, inputs // g, g) @ (1 << np.arange(g))
        is_upper = index >= 1 << (g - 1)
        entry, sign = np.where(is_upper, (1 << g) - 1 - index, index), np.where(is_upper, -1.0, 1.0)
        for token in range(tokens):
            read = tables[token, place, entry] * sign
            sums[token] += float(1 << bit) * read.reshape(outputs, groups, -1).sum(axis=-1)
    # weight = scale (w' + offset) / 2 with offset = 2^p - 1 - 2 zero
    offset = ((1 << p) - 1) - 2.0 * weights.zeros
    shared = a.reshape(tokens, groups, -1).sum(axis=-1)[:, None, :]
    values = (weights.scales / 2.0 * (sums + offset * shared)).sum(axis=-1)
    return Product(values=values, counts=_counts(tokens, weights, g))


def _patterns(g: int) -> Floats:
    """Signs of the patterns whose highest bit is 0: (entries, inputs)."""
    return 2.0 * ((np.arange(1 << (g - 1))[:, None] >> np.arange(g)) & 1) - 1.0


def _counts(tokens: int, weights: FewBitWeights, g: int) -> Counts:
    """An entry differs from its neighbour in Gray order by one activation, twice: one add, and g - 1 for the first."""
    tables, entries = tokens * weights.codes.shape[1] // g, 1 << (g - 1)
    lookups = tokens * weights.codes.size // g * weights.bits
    results = tokens * weights.scales.size
    return Counts(
        num_table_entries=tables * entries,
        num_lookups=lookups,
        num_shifts=results * weights.bits,
        num_adds=tables * (entries + g - 2) + lookups + results,
        num_scalings=results,
    )


TECHNIQUE = Technique(
    name="matmul-lookup",
    extension_point="numerics.matmul",
    rule=rule,
    knobs=LookupKnobs,
    gains="One table read and one addition stand for several multiplications, with activations of any format.",
    costs="Tables must be made and stored, twice as large for each input more; every weight bit is a pass.",
    claims=("lut-tensor-core",),
)

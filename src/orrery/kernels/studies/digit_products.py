"""Additions of exact integer products: a shifted addition for each digit, or tables of sums that bits pick from."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers, whole
from orrery.engine.streams import stream
from orrery.kernels.lowbit.digits import ENCODINGS, Ints, by_tables, digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Widths of weights and of activations; inputs, outputs, tokens; weights of a table; their spread."""

    weight_bits: str = "4,8"
    activation_bits: int = 8
    inputs: int = 256
    outputs: int = 64
    tokens: str = "1,8"
    group: str = "2,4"
    spread_ratio: float = 0.25  # of drawn numbers, over the largest that the bits hold


def run(request: Run) -> tuple[Row, ...]:
    """A row a way of multiplying, width and number of tokens."""
    sizes: Sizes = request.sizes
    widths = [whole("weight_bits", int(n), least=2, most=16) for n in numbers("weight_bits", sizes.weight_bits)]
    groups = [whole("group", int(n), most=8) for n in numbers("group", sizes.group, least=1)]
    many = [whole("tokens", int(n), most=1024) for n in numbers("tokens", sizes.tokens, least=1)]
    inputs = whole("inputs", sizes.inputs, most=4096)
    if not sizes.spread_ratio > 0.0 or any(inputs % group for group in groups):
        raise ScenarioError(f"set: write spread_ratio above 0, and inputs ({inputs}) as a multiple of each group.")
    whole("activation_bits", sizes.activation_bits, least=2, most=16)
    whole("outputs", sizes.outputs, most=4096)
    return tuple(row for bits in widths for row in _rows(request, sizes, bits, groups, many))


def _rows(request: Run, sizes: Sizes, bits: int, groups: list[int], many: list[int]) -> Iterator[Row]:
    shape = (sizes.inputs, sizes.outputs)
    weights = _whole_numbers(request, "weights", shape, bits, sizes.spread_ratio)
    for tokens in many:
        x = _whole_numbers(
            request, f"tokens/{tokens}", (tokens, sizes.inputs), sizes.activation_bits, sizes.spread_ratio
        )
        exact, products = x @ weights, tokens * weights.size
        for encoding in ENCODINGS:
            written = digits(weights, bits, encoding)
            yield {
                "way": encoding,
                "weight_bits": bits,
                "tokens": tokens,
                "additions_per_product": written.per_number,
                "skipped_frac": 1.0 - written.per_number / written.values.shape[-1],
                "is_exact": bool((x @ written.numbers == exact).all()),
            }
        for group in groups:
            found = by_tables(weights, x, group, sizes.activation_bits)
            for way, looked in (("tables", found.num_picked), ("tables, patterns once", found.num_distinct)):
                yield {
                    "way": f"{way}, of {group}",
                    "weight_bits": bits,
                    "tokens": tokens,
                    "additions_per_product": (found.num_built + looked) / products,
                    "skipped_frac": 1.0 - looked / found.num_picked,
                    "is_exact": bool((found.result == exact).all()),
                }


def _whole_numbers(request: Run, name: str, shape: tuple[int, int], bits: int, spread_ratio: float) -> Ints:
    """Normal numbers of that spread, rounded and cut."""
    largest = 2 ** (bits - 1) - 1
    drawn = stream(request.seed, f"digits/{name}").standard_normal(shape) * spread_ratio * largest
    return np.clip(np.rint(drawn), -largest, largest).astype(np.int64)


EXPERIMENT = Experiment(
    name="digit-products",
    question="How many additions do integer products take, digit by digit or from tables of sums?",
    run=run,
    num_steps=1,
    claims=("bit-weight-tpe", "sail-lut-gemv"),
    sizes=Sizes,
    keys=("way", "weight_bits", "tokens"),
    curve=("tokens", "additions_per_product"),
)

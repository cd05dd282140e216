"""Matrix products of a layer's forward and backward pass: y = x W^T, dx = dy W, dW = dy^T x.

All products of one direction and format are asked for in one call. Times are those of measured kernels alone; what
clocks under load and everything else take is the framework's ``matrix_ratio``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery import kernels
from orrery.execution.train.cut import Choice, Ints, Product, tokens
from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.kernels.ops import Gemm, Size
from orrery.models.model import Block
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

WIDE_BYTES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Passes:
    """Seconds (or anything that adds up) of the three products; arrays of the choices."""

    forward_s: Floats
    input_gradient_s: Floats
    weight_gradient_s: Floats

    def __add__(self, other: "Passes") -> "Passes":
        return Passes(
            forward_s=self.forward_s + other.forward_s,
            input_gradient_s=self.input_gradient_s + other.input_gradient_s,
            weight_gradient_s=self.weight_gradient_s + other.weight_gradient_s,
        )

    def times(self, factor: float | Ints) -> "Passes":
        """Multiply the seconds of every pass by ``factor``."""
        return Passes(
            forward_s=self.forward_s * factor,
            input_gradient_s=self.input_gradient_s * factor,
            weight_gradient_s=self.weight_gradient_s * factor,
        )


def nothing(choice: Choice) -> Passes:
    """No work at all."""
    zero = np.zeros(choice.tp.shape)
    return Passes(forward_s=zero, input_gradient_s=zero, weight_gradient_s=zero)


def product_times(job: TrainingJob, products: list[Product], choice: Choice, cuts: int | Ints = 1) -> list[Passes]:
    """Times (s) of each product, with the tokens cut into ``cuts`` pieces (of each choice) one after the other."""
    out: list[Passes] = [nothing(choice)] * len(products)
    t = np.maximum(tokens(job, choice) // cuts, 1)
    for stays_wide, timed in ((False, grouped_times), (True, wide_times)):
        members = [i for i, p in enumerate(products) if is_wide(job, p) == stays_wide]
        if members:
            n, k, groups = (np.array([getattr(products[i], x) for i in members]) for x in ("n", "k", "groups"))
            for i, times in zip(members, timed(job, np.array([t] * len(members)), n, k, groups), strict=True):
                out[i] = times.times(cuts)
    return out


def is_wide(job: TrainingJob, product: Product) -> bool:
    """Whether a product stays in 16 bits: routers and heads do, in every recipe."""
    return not job.recipe.is_narrow or product.linear.role in ("router", "head")


def grouped_times(job: TrainingJob, m: Ints, n: Ints, k: Ints, groups: Ints) -> list[Passes]:
    """(m x k) by (k x n), ``groups`` times at once, in the recipe's formats; a product a row of the arrays."""
    recipe, share = job.recipe, job.wide_layers_frac
    formats = (recipe.forward_format, recipe.input_gradient_format, recipe.weight_gradient_format)
    found = _passes(job, m, n, k, groups, formats, job.task not in FROZEN)
    if not (recipe.is_narrow and share):
        return found
    wide = wide_times(job, m, n, k, groups)
    return [x.times(1.0 - share) + y.times(share) for x, y in zip(found, wide, strict=True)]


def wide_times(job: TrainingJob, m: Ints, n: Ints, k: Ints, groups: Ints) -> list[Passes]:
    """The same in the 16 bits that a recipe keeps beside its narrow formats."""
    wide = job.recipe.wide_format
    return _passes(job, m, n, k, groups, (wide, wide, wide), job.task not in FROZEN)


def trained_times(job: TrainingJob, m: Ints, n: Ints, k: Ints, groups: Ints) -> list[Passes]:
    """The same where the weights are trained though those of the layers are frozen."""
    wide = job.recipe.wide_format
    return _passes(job, m, n, k, groups, (wide, wide, wide), True)


def _passes(
    job: TrainingJob, m: Ints, n: Ints, k: Ints, groups: Ints, formats: tuple[str, str, str], has_weights: bool
) -> list[Passes]:
    """The three products of each row: the result's gradient takes its part in both of the backward ones."""
    same = len(set(formats)) == 1
    if same:  # one call for both
        sizes = [np.array(pair) for pair in ((m, m), (n, k), (k, n))]
        found = list(_time(job, sizes[0], sizes[1], sizes[2], np.array([groups] * 2), formats[0]))
    else:
        found = [_time(job, m, n, k, groups, formats[0]), _time(job, m, k, n, groups, formats[1])]
    if has_weights:  # n x k of them
        found.append(_time(job, n, k, m, groups, formats[2], summed_bytes(job)))
    else:
        found.append(np.zeros(m.shape))
    return [
        Passes(forward_s=found[0][i], input_gradient_s=found[1][i], weight_gradient_s=found[2][i])
        for i in range(len(m))
    ]


def summed_bytes(job: TrainingJob) -> float:
    """Bytes per element of a weight gradient that products add to the sum of earlier micro-batches: read and written.

    0: the product's result is written in 16 bits, and autograd adds it in passes of its own.
    """
    gradient_bytes = job.recipe.gradient_bytes or job.framework.gradient_bytes
    return 2.0 * gradient_bytes if job.framework.fuses_gradient_sums else 0.0


def _time(job: TrainingJob, m: Size, n: Size, k: Size, groups: Size, format: str, result_bytes: float = 0.0) -> Floats:
    op = Gemm(
        m=m,
        n=n,
        k=k,
        batch=groups,
        format=format,
        quantises_input=False,
        result_bytes=result_bytes,
    )
    return kernels.predict(op, job.cluster.device, job.framework.kernels).time_s


def is_unmade(what: str, block: Block, p: Product) -> bool:
    """Whether full recomputation leaves a product out, since the backward pass reads its inputs alone.

    ``outputs``: all products whose results join the residual stream, which is kept; ``last product``: the one that a
    layer ends with, where recomputation stops once it has made what was saved.
    """
    is_last = p.linear.role == "mlp" and block.experts is None
    return p.linear.shard == "row" and (what == "outputs" or (what == "last product" and is_last))


def product_flops(job: TrainingJob, products: list[Product], choice: Choice) -> Floats:
    """FLOPs of the forward pass; each backward product takes as many."""
    total = sum((p.parameters for p in products), np.zeros(choice.tp.shape))
    return 2.0 * tokens(job, choice) * total


def product_bytes(job: TrainingJob, products: list[Product], choice: Choice) -> Floats:
    """Bytes of the forward pass: operands and results in the formats of memory; each backward product moves as many."""
    t, narrow = tokens(job, choice), get_format(job.recipe.forward_format).bytes_per_element
    total = np.zeros(choice.tp.shape)
    for p in products:
        each = WIDE_BYTES if is_wide(job, p) else narrow
        total = total + p.groups * (each * (t * p.k + p.n * p.k) + WIDE_BYTES * t * p.n)
    return total

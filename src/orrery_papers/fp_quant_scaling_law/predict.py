"""Scaling laws for training in few-bit floats: best widths over budgets, exponent against mantissa, too much data."""

from collections.abc import Iterator
from itertools import pairwise

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.numerics.laws import fp_quantisation as law

FP8 = (4, 3)
"""Exponent and mantissa bits of the example."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """The law at the paper's budgets, and around FP8."""
    budgets = paper.setups["budgets"]
    block = int(budgets.number("num_block_elements"))
    best = [law.best_width(flops, block) for flops in budgets.numbers("flops_swept")]
    text = ", ".join(f"{spent.compute_flops:.0e} FLOP {spent.bits} bits" for spent in best)
    widths = [float(spent.bits) for spent in best]
    for claim, width in (("least-width", min(widths)), ("largest-width", max(widths))):
        yield Prediction(claim=claim, predicted=width, because=f"model size, data and width free: {text}")
    grows = all(a <= b for a, b in pairwise(widths))
    yield Prediction(
        claim="width-grows",
        predicted=widths[-1] / widths[0],
        because="more at every tenfold budget, or the same" if grows else "not at every budget",
    )
    one = paper.setups["one-billion"]
    size, block = one.number("num_parameters"), int(one.number("num_block_elements"))
    tokens = float(law.critical_tokens(size, *FP8, block))
    exponent, mantissa = (float(law.added(size, tokens, *split, block)) for split in ((5, 4), (4, 5)))
    yield Prediction(
        claim="exponent-over-mantissa",
        predicted=mantissa / exponent,
        because=f"to E4M4, where both have as many: an exponent bit more leaves {exponent:.3g} nats, a mantissa bit "
        f"{mantissa:.3g}",
    )
    more = float(law.loss(size, 10.0 * tokens, *FP8, block)) / float(law.loss(size, tokens, *FP8, block))
    yield Prediction(
        claim="too-much-data", predicted=more, because=f"E4M3 at ten times its critical data of {tokens:.3g} tokens"
    )

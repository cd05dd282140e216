"""INT v.s. FP: who loses less by block size, width and rotation; and what symmetric clipping does to the bias."""

from collections.abc import Iterator, Sequence

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.numerics.parse import parse_format
from orrery_papers.int_vs_fp.crest import clipping_bias, crossover, sqnr_by_block

LAWS = ("normal", "student_t", "laplace")
HEAVY_LAWS = ("student_t", "laplace")
OUTLIERS = ("outliers",)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Claims in the paper's order."""
    yield from fine(paper.setups["fine"])
    integer, float_ = formats(paper.setups["coarse"])
    coarse = error_ratio(float_, integer, OUTLIERS, block_of(paper.setups["coarse"]))
    yield Prediction(
        claim="coarse", predicted=coarse, because="floats over integers, one scale for a token of outliers"
    )
    yield from rotated(paper.setups["rotated"])
    yield clipping(paper.setups["training"])


def fine(setup: Setup) -> Iterator[Prediction]:
    """Predict at which widths the integers lose less than the floats."""
    names, block = formats(setup), block_of(setup)
    yield Prediction(
        claim="block",
        predicted=float(parse_format(names[0]).block_elements),
        because="the format's own innermost scale",
    )
    pairs = {parse_format(i).element_bits: (i, f) for i, f in zip(names[::2], names[1::2], strict=True)}
    ratios = {bits: error_ratio(*pair, LAWS, block) for bits, pair in pairs.items()}
    text = ", ".join(f"{ratio:.2f} at {bits:g} bits" for bits, ratio in ratios.items())
    because = f"error of integers over that of floats in blocks of {block}, mean of {', '.join(LAWS)}: {text}"
    lead = [bits for bits, ratio in ratios.items() if ratio < 1]
    lag = [bits for bits, ratio in ratios.items() if ratio > 1]
    yield Prediction(claim="integers-lead", predicted=min(lead, default=0.0), because=because)
    at = crossover("nvint4", "nvfp4", 16)
    yield Prediction(
        claim="floats-lead",
        predicted=max(lag, default=0.0),
        because=f"{because}; with scales of sixteen the lead changes at a crest factor of {at:.2f}",
    )


def rotated(setup: Setup) -> Iterator[Prediction]:
    """NVINT4 and NVFP4 before and after."""
    integer, float_ = formats(setup)
    block, mixed = block_of(setup), int(setup.number("num_rotated_channels"))
    yield Prediction(
        claim="nv-unrotated",
        predicted=error_ratio(float_, integer, HEAVY_LAWS, block),
        because="floats over integers, not rotated",
    )
    yield Prediction(
        claim="nv-rotated",
        predicted=error_ratio(integer, float_, HEAVY_LAWS, block, mixed),
        because=f"integers over floats after random Hadamard rotations of {mixed}",
    )


def clipping(setup: Setup) -> Prediction:
    """How much of the bias a symmetric range takes away."""
    bits, block = int(setup.number("bits_swept")), block_of(setup)
    before = clipping_bias(bits, is_symmetric=False, block_elements=block)
    after = clipping_bias(bits, is_symmetric=True, block_elements=block)
    return Prediction(
        claim="symmetric-clipping",
        predicted=1.0 - after.mean_steps / before.mean_steps,
        because=f"{before.mean_steps:.4f} steps on average with the lowest code, which "
        f"{percent(before.lowest_code_frac, 2)} of numbers take; {after.mean_steps:.4f} without it",
    )


def formats(setup: Setup) -> list[str]:
    """The set-up's formats."""
    return [word.strip() for word in setup.word("formats_swept").split(",")]


def block_of(setup: Setup) -> int:
    """Elements that share a scale."""
    return int(setup.number("num_block_elements"))


def error_ratio(first: str, second: str, laws: Sequence[str], block: int, rotated_elements: int = 0) -> float:
    """Root mean square error of the first over that of the second, geometric mean over tensors."""
    leads_db: list[float] = []
    for law in laws:
        rows = sqnr_by_block((first, second), (block,), law, rotated_elements=rotated_elements)
        leads_db.append(rows[0].sqnr_db - rows[1].sqnr_db)
    return float(10.0 ** (-np.mean(leads_db) / 20.0))

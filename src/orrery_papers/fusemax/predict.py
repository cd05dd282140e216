"""FuseMax: attention in one pass and in three on an array, over four models and six lengths, and with linear layers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.spatial.attention import (
    ArrayRun,
    Attention,
    SpatialArray,
    one_pass,
    three_pass,
)
from orrery_papers.fusemax.energy import Energies, one_pass_j, products_j, three_pass_j

MODELS = ("bert", "trxl", "t5", "xlm")
PROJECTIONS = 4
"""Queries, keys, values and output, each as wide as the model."""

ENERGY = "energies of the buffer and of memory are assumed, and buffers are counted for scores alone"
SPILLS = "what the older design spills beyond its buffer, and when, is the authors' search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One model at one length on both designs, attention and linear layers."""

    before: ArrayRun
    after: ArrayRun
    linear_s: float
    before_j: float
    after_j: float
    linear_before_j: float
    linear_after_j: float


def predict(paper: Paper) -> Iterator[Prediction]:
    """Means over models and lengths, then single runs."""
    flat, fusemax = paper.setups["flat"], paper.setups["fusemax"]
    lengths = [int(n) for n in fusemax.numbers("input_tokens_swept")]
    runs = [compared(paper.setups[model], n, flat, fusemax) for model in MODELS for n in lengths]
    gains = [r.before.time_s / r.after.time_s for r in runs]
    spread = f"{len(runs)} runs, {min(gains):.2f} to {max(gains):.2f}"
    yield Prediction(
        claim="attention-speedup",
        predicted=float(np.mean(gains)),
        differs=SPILLS,
        because=f"softmax on the lanes holds the array up, one pass does not: {spread}; scores that wait on chip: "
        f"{max(r.before.row_buffer_bytes for r in runs):.3g} and "
        f"{max(r.after.row_buffer_bytes for r in runs):.3g} bytes",
    )
    saved = [1.0 - r.after_j / r.before_j for r in runs]
    yield Prediction(
        claim="attention-energy",
        predicted=float(np.mean(saved)),
        differs=ENERGY,
        because=f"{min(saved):.0%} to {max(saved):.0%} less: no scores in the buffer or memory, dearer exponentials",
    )
    whole = [(r.before.time_s + r.linear_s) / (r.after.time_s + r.linear_s) for r in runs]
    yield Prediction(
        claim="speedup",
        predicted=float(np.mean(whole)),
        differs=SPILLS,
        because=f"linear layers take the same time on both: {min(whole):.2f} to {max(whole):.2f}",
    )
    saved = [1.0 - (r.after_j + r.linear_after_j) / (r.before_j + r.linear_before_j) for r in runs]
    yield Prediction(
        claim="energy",
        predicted=float(np.mean(saved)),
        differs=ENERGY,
        because=f"{min(saved):.0%} to {max(saved):.0%} less with linear layers",
    )
    busy = [r.after.busy_frac for r in runs]
    yield Prediction(
        claim="utilization", predicted=float(np.mean(busy)), because=f"{min(busy):.3f} to {max(busy):.3f} by length"
    )
    yield from (_single(paper, claim) for claim in paper.claims if claim.origin == "artifact" and not claim.missing)


def _single(paper: Paper, claim: Claim) -> Prediction:
    """One run of the authors' tables, named model-length-design-what."""
    model, _, design, what = claim.id.split("-")
    work = attention(paper.setups[model], int(claim.setup.number("input_tokens_swept")), claim.setup)
    run = (three_pass if design == "flat" else one_pass)(work, array(claim.setup))
    return Prediction(
        claim=claim.id,
        predicted=run.time_s if what == "time" else run.busy_frac,
        differs=SPILLS,
        because=f"{run.time_s:.4g} s, array busy {run.busy_frac:.1%}, {run.memory_bytes:.3g} bytes from memory",
    )


def compared(model: Setup, length: int, flat: Setup, fusemax: Setup) -> Compared:
    """One model at one length."""
    work = attention(model, length, fusemax)
    before, after = three_pass(work, array(flat)), one_pass(work, array(fusemax))
    wide, ffn = model.number("num_hidden"), model.number("num_ffn_features")
    macs = fusemax.number("num_batch") * length * (PROJECTIONS * wide**2 + 2.0 * wide * ffn)
    return Compared(
        before=before,
        after=after,
        linear_s=macs / (fusemax.number("num_side") ** 2 * fusemax.number("circuit_hz")),
        before_j=three_pass_j(work, before, energies(flat)),
        after_j=one_pass_j(work, after, array(fusemax), energies(fusemax)),
        linear_before_j=products_j(macs, energies(flat)),
        linear_after_j=products_j(macs, energies(fusemax)),
    )


def attention(model: Setup, length: int, run: Setup) -> Attention:
    """All heads of all sequences of one layer."""
    heads = int(model.number("num_heads") * run.number("num_batch"))
    return Attention(num_heads=heads, num_rows=length, num_head_features=int(model.number("num_head_features")))


def array(setup: Setup) -> SpatialArray:
    """The set-up's design."""
    return SpatialArray(
        num_side=int(setup.number("num_side")),
        clock_hz=setup.number("circuit_hz"),
        buffer_bytes=setup.number("array_buffer_bytes"),
        memory_bandwidth_bytes_per_s=setup.number("memory_bandwidth_bytes_per_s"),
    )


def energies(setup: Setup) -> Energies:
    """The set-up's operations."""
    names = ("multiply_add_j", "add_j", "divide_j", "exponential_j", "register_j", "buffer_j", "memory_j_per_bytes")
    return Energies(**{name: setup.number(name) for name in names})

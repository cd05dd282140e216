"""FuseMax: attention in one pass and in three on an array, over four models and six lengths, and with linear layers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.spatial.attention import Attention
from orrery.scenario.kernel.answer import KernelRow
from orrery_papers.fusemax.energy import Energies, one_pass_j, products_j, three_pass_j
from orrery_papers.shared.kernel_rows import kernel_rows
from orrery_papers.shared.own_devices import device_file

MODELS = ("bert", "trxl", "t5", "xlm")
PROJECTIONS = 4
"""Queries, keys, values and output, each as wide as the model."""

PASSES = {"flat": "three-pass", "fusemax": "one-pass"}
"""Ways in which each design computes attention, as ``orrery kernel attention`` calls them."""

ENERGY = "energies of the buffer and of memory are assumed, and buffers are counted for scores alone"
SPILLS = "what the older design spills beyond its buffer, and when, is the authors' search"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One model at one length on both designs, attention and linear layers."""

    before: KernelRow
    after: KernelRow
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
        f"{max(r.before.details['row_buffer_bytes'] for r in runs):.3g} and "
        f"{max(r.after.details['row_buffer_bytes'] for r in runs):.3g} bytes",
    )
    saved = [1.0 - r.after_j / r.before_j for r in runs]
    yield Prediction(
        claim="attention-energy",
        predicted=float(np.mean(saved)),
        differs=ENERGY,
        because=f"{percent(min(saved))} to {percent(max(saved))} less: no scores in the buffer or memory, dearer "
        "exponentials",
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
        because=f"{percent(min(saved))} to {percent(max(saved))} less with linear layers",
    )
    busy = [float(r.after.details["busy_frac"]) for r in runs]
    yield Prediction(
        claim="utilization", predicted=float(np.mean(busy)), because=f"{min(busy):.3f} to {max(busy):.3f} by length"
    )
    yield from (_single(paper, claim) for claim in paper.claims if claim.origin == "artifact" and not claim.missing)


def _single(paper: Paper, claim: Claim) -> Prediction:
    """One run of the authors' tables, named model-length-design-what."""
    model, _, design, what = claim.id.split("-")
    length = int(claim.setup.number("input_tokens_swept"))
    row = attention(paper.setups[model], length, claim.setup, PASSES[design])
    busy_frac = float(row.details["busy_frac"])
    return Prediction(
        claim=claim.id,
        predicted=row.time_s if what == "time" else busy_frac,
        differs=SPILLS,
        because=f"{row.time_s:.4g} s, array busy {percent(busy_frac, 1)}, {row.bytes:.3g} bytes from memory",
    )


def compared(model: Setup, length: int, flat: Setup, fusemax: Setup) -> Compared:
    """One model at one length."""
    before, after = attention(model, length, flat, PASSES["flat"]), attention(model, length, fusemax, PASSES["fusemax"])
    work = Attention(
        num_heads=int(model.number("num_heads") * fusemax.number("num_batch")),
        num_rows=length,
        num_head_features=int(model.number("num_head_features")),
    )
    wide, ffn = model.number("num_hidden"), model.number("num_ffn_features")
    macs = fusemax.number("num_batch") * length * (PROJECTIONS * wide**2 + 2.0 * wide * ffn)
    side = int(fusemax.number("num_side"))
    return Compared(
        before=before,
        after=after,
        linear_s=macs / (side**2 * fusemax.number("circuit_hz")),
        before_j=three_pass_j(work, before.bytes, energies(flat)),
        after_j=one_pass_j(work, after.bytes, side, energies(fusemax)),
        linear_before_j=products_j(macs, energies(flat)),
        linear_after_j=products_j(macs, energies(fusemax)),
    )


def attention(model: Setup, length: int, design: Setup, passes: str) -> KernelRow:
    """``orrery kernel attention``: all heads of all sequences of one layer on the set-up's array."""
    multiplier_hz = design.number("num_side") ** 2 * design.number("circuit_hz")
    facts = {
        "dense_fp16_flops_per_s": 2.0 * multiplier_hz,
        "dense_bf16_flops_per_s": 2.0 * multiplier_hz,
        "compute_clock_hz": design.number("circuit_hz"),
        "last_level_cache_bytes": design.number("array_buffer_bytes"),
        "memory_bandwidth_bytes_per_s": design.number("memory_bandwidth_bytes_per_s"),
    }
    with device_file("fusemax", facts) as device:
        rows = kernel_rows(
            "attention",
            device=device,
            variant=passes,
            query_tokens=length,
            num_heads=int(model.number("num_heads")),
            batch=int(design.number("num_batch")),
            head_size=int(model.number("num_head_features")),
            not_causal=True,
        )
    return rows[passes]


def energies(setup: Setup) -> Energies:
    """The set-up's operations."""
    names = ("multiply_add_j", "add_j", "divide_j", "exponential_j", "register_j", "buffer_j", "memory_j_per_bytes")
    return Energies(**{name: setup.number(name) for name in names})

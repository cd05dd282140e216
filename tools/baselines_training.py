"""Two simple rivals for training steps, set beside orrery on the scorecard.

Roofline: the operations of a step, recomputed ones included, at the dense peak of the format that the recipe
multiplies in, on all devices at once.

Closed form: five constants for each device generation and precision, fitted on the fit rows by least squares on the
logarithm of the error, as are those of the other tables::

    t = c0 + flops / (c1 x peak) x (1 + c2 (pp - 1) / (m vp))
           + c3 x tensor bytes / bandwidth + c4 x gradient bytes / bandwidth

with flops of one device, m micro-batches, four all-reduces of the activations of a layer and micro-batch (tensor
parallel), and one all-reduce of the gradients in 16 bits over the ranks that hold the same parameters (data parallel).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from baselines import FEWEST
from orrery.evidence.split import FIT
from orrery.evidence.training_rows import Read
from orrery.training.columns import columns_of
from orrery.training.step import Steps, step_of
from orrery.training.worth import peak_flops_per_s

Floats = NDArray[np.float64]

ELEMENT_BYTES = 2.0
ALL_REDUCES = 4.0
"""Of a layer and micro-batch: after attention and after the MLP, forward and backward."""

TIMES = ("step_time_s", "tokens_per_s_per_device", "micro_step_time_s")
"""Metrics that say how long a step takes; a row that states several is counted by the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the rivals know of one row, and what orrery says of it."""

    number: int
    member: Read
    flop_s: float  # of one device at its peak
    bubble_ratio: float  # (pp - 1) / (m vp)
    tensor_s: float  # bytes of tensor parallelism over the link's bandwidth
    gradient_s: float  # the same of the gradients
    ours_s: float

    @property
    def group(self) -> tuple[str, str]:
        """Generation of the device, and precision."""
        job = self.member.job
        return job.cluster.device.generation, job.recipe.name


def steps(members: Sequence[Read]) -> list[Step]:
    """Every row's step; rows of one job are asked together."""
    by_job: dict[int, list[Read]] = {}
    for member in members:
        by_job.setdefault(id(member.job), []).append(member)
    out: list[Step] = []
    for rows in by_job.values():
        found = step_of(rows[0].job, columns_of([r.layout for r in rows]))
        out += [_step(r, found, i) for i, r in enumerate(rows)]
    return out


def _step(member: Read, found: Steps, index: int) -> Step:
    job, x = member.job, member.layout
    m = max(1, job.num_micro_batches(x))
    tensor = ALL_REDUCES * job.model.num_layers / x.pp * m * _ring(x.tp) * ELEMENT_BYTES
    tensor *= x.micro_batch * job.seq_len * job.model.hidden_size / x.cp
    held = job.model.num_parameters / (x.tp * x.pp)
    data = _ring(x.num_data_ranks) * ELEMENT_BYTES * held
    return Step(
        number=member.number,
        member=member,
        flop_s=float(found.hardware_flops[index]) / peak_flops_per_s(job),
        bubble_ratio=(x.pp - 1) / (m * x.vp),
        tensor_s=tensor / job.cluster.link(x.tp).each_way_bytes_per_s,
        gradient_s=data / job.cluster.link(x.tp * x.num_data_ranks).each_way_bytes_per_s,
        ours_s=float(found.time_s[index]),
    )


def _ring(ranks: int) -> float:
    """How often each byte of an all-reduce passes a device's link."""
    return 2.0 * (ranks - 1) / ranks


def stated_time(member: Read) -> tuple[str, float]:
    """(the metric that says how long a step takes, the step's seconds); a blank and NaN where none does."""
    row, job = member.row, member.job
    for metric in TIMES:
        if value := row.number(metric):
            if metric == "tokens_per_s_per_device":
                return metric, job.tokens_per_step / value / member.layout.num_devices
            return metric, value * (job.num_micro_batches(member.layout) if metric == "micro_step_time_s" else 1)
    return "", float("nan")


def closed_s(constants: Floats, terms: Floats) -> Floats:
    """The five-constant form; ``terms`` has the columns of ``terms_of``."""
    c0, c1, c2, c3, c4 = constants
    flop_s, bubble_ratio, tensor_s, gradient_s = terms.T
    return c0 + flop_s / c1 * (1.0 + c2 * bubble_ratio) + c3 * tensor_s + c4 * gradient_s


def terms_of(rows: Sequence[Step]) -> Floats:
    """What the constants multiply, one line a row."""
    return np.array([[r.flop_s, r.bubble_ratio, r.tensor_s, r.gradient_s] for r in rows])


def fit_closed(rows: Sequence[Step], time_s: Floats) -> Floats:
    """Constants for some rows."""
    terms = terms_of(rows)

    def residual(x: Floats) -> Floats:
        return np.arctan(np.log(closed_s(np.exp(x), terms) / time_s) * 5)

    start = np.log([min(5e-3, 0.3 * float(time_s.min())), 0.5, 1.0, 1.0, 0.3])
    bounds = np.log([[1e-6, 0.005, 1e-3, 1e-3, 1e-3], [10.0, 1.2, 10.0, 20.0, 20.0]])
    return np.exp(least_squares(residual, start, bounds=bounds, max_nfev=200).x)


def fit_groups(rows: Sequence[tuple[Step, str]]) -> dict[tuple[str, str], Floats]:
    """Constants of each generation and precision with fit rows enough; blanks pool all. ``rows`` are (step, side)."""
    fit = [(r, t) for r, side in rows if side == FIT and (t := stated_time(r.member)[1]) > 0]
    out = {("", ""): fit_closed([r for r, _ in fit], np.array([t for _, t in fit]))}
    for group in sorted({r.group for r, _ in fit}):
        mine = [(r, t) for r, t in fit if r.group == group]
        if len(mine) >= FEWEST:
            out[group] = fit_closed([r for r, _ in mine], np.array([t for _, t in mine]))
    return out


def rivals(row: Step, constants: dict[tuple[str, str], Floats]) -> tuple[float, float]:
    """Seconds of a step by the roofline and by the closed form."""
    chosen = constants.get(row.group, constants["", ""])
    return row.flop_s, float(closed_s(chosen, terms_of([row]))[0])

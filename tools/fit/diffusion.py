"""Fit the constants of eager diffusion pipelines: ``python tools/fit/diffusion.py [--data DIR]``.

Rows of ML.ENERGY's benchmark (xDiT at 21dcdcf on PyTorch 2.6 and 2.7, FlashAttention 2, no compiled graphs) state the
latency of a batch, the power of all devices and the joules of one picture or video. Nine constants serve all models on
all devices. Every model is left out once, and the errors there are the interval and the score; power has no constant
here, its law is that of serving. Every model on every device weighs the same.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from accuracy_tables import write_tables
from kernel_scores import quantiles, write_calibrations
from numpy.typing import NDArray
from scipy.optimize import minimize

from orrery.evidence.accuracy import read_tables
from orrery.evidence.diffusion_rows import job_of, rows_of, translated
from orrery.evidence.tables import Table, read_table
from orrery.execution.diffusion import FORMAT, Job, Work, decoder_work, encoder_work, pass_work, seconds
from orrery.execution.generation import ENERGY, RUNTIME, mean_power_w
from orrery.kernels import energy

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

START = {
    "product_frac": 0.8,
    "attention_flops_per_clock": 1800.0,
    "exponential_flops": 80.0,
    "stream_bytes_per_clock": 6.5,
    "exchange_frac": 0.5,
    "convolution_frac": 0.1,
    "operator_s": 2e-5,
    "exchange_operator_s": 1.3e-4,
    "hop_operator_s": 2e-4,
}
ONE_MODEL_LEFT_OUT = "diffusion, a model left out"
LOSS_SCALE, PULL = 0.1, 0.002
NAMES = tuple(START)
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """What was run and measured."""

    jobs: Sequence[Job]
    works: Mapping[str, tuple[Work, Work, Work]]  # by device: of a pass, of pixels, of prompts
    members: Mapping[str, NDArray[np.int64]]
    passes: Floats
    latency_s: Floats
    power_w: Floats
    energy_j: Floats
    model: NDArray[np.str_]
    weight: Floats

    def predicted_s(self, constants: Mapping[str, float]) -> Floats:
        """Latency of every row."""
        out = np.empty(len(self.jobs))
        for name, (one_pass, pixels, prompts) in self.works.items():
            index = self.members[name]
            device = self.jobs[int(index[0])].device
            each = [seconds(work, device, constants).time_s for work in (one_pass, pixels, prompts)]
            out[index] = each[0] * self.passes[index] + each[1] + each[2]
        return out


def stacked(works: Sequence[Work]) -> Work:
    """Many pieces of work as one with arrays."""
    return Work(**{f.name: np.array([getattr(w, f.name) for w in works]) for f in fields(Work)})


def read(table: Table) -> Rows:
    """The rows of a table, ready to be fitted."""
    jobs = [job_of(row) for _, row in rows_of(table, np.arange(len(table)))]
    device = np.array([job.device.name for job in jobs])
    model = np.array([job.model.name for job in jobs])
    works, members, weight = {}, {}, np.zeros(len(jobs))
    for name in np.unique(device):
        members[str(name)] = index = np.flatnonzero(device == name)
        mine = [jobs[i] for i in index]
        works[str(name)] = tuple(stacked([of(job) for job in mine]) for of in (pass_work, decoder_work, encoder_work))
    for key in {*zip(model, device, strict=True)}:
        mask = (model == key[0]) & (device == key[1])
        weight[mask] = 1.0 / mask.sum()
    return Rows(
        jobs=jobs,
        works=works,
        members=members,
        passes=np.array([job.num_passes for job in jobs], np.float64),
        latency_s=table.numbers("latency_s"),
        power_w=table.numbers("power_w"),
        energy_j=table.numbers("energy_j_per_item"),
        model=model,
        weight=weight,
    )


def fit(rows: Rows, mask: Flags, start: Floats) -> Floats:
    """Logarithms of the constants that serve these rows best."""
    first = np.log(np.array(list(START.values())))

    def loss(x: Floats) -> float:
        off = np.log(rows.predicted_s(constants(x)) / rows.latency_s)[mask]
        weight = rows.weight[mask]
        robust = np.sqrt(off**2 + LOSS_SCALE**2)
        return float((weight * robust).sum() / weight.sum() + PULL * ((x - first) ** 2).sum())

    return minimize(loss, start, method="Powell", options={"maxiter": 8, "ftol": 1e-5}).x


def constants(x: Floats) -> dict[str, float]:
    """By name."""
    return dict(zip(NAMES, np.exp(x).tolist(), strict=True))


def power_w(rows: Rows, by_row: Sequence[Mapping[str, float]]) -> Floats:
    """Power of every row at the predicted times, as the shipped law has it."""
    out = np.empty(len(rows.jobs))
    for i, (job, c) in enumerate(zip(rows.jobs, by_row, strict=True)):
        matrix_s = memory_s = busy_s = wall_s = 0.0
        for work, count, is_one in (
            (pass_work(job), job.num_passes, False),
            (decoder_work(job), 1, True),
            (encoder_work(job), 1, False),
        ):
            parts = seconds(work, job.device, c)
            busy = count / (job.num_devices if is_one else 1)
            done = work.product_flops + work.plain_flops + work.convolution_flops
            more = energy.weighted_s(job.device, FORMAT, done, work.stream_bytes)
            matrix_s, memory_s = matrix_s + busy * more[0], memory_s + busy * more[1]
            busy_s, wall_s = busy_s + busy * parts.device_s, wall_s + count * parts.time_s
        out[i] = job.num_devices * mean_power_w(job.device, float(matrix_s), float(memory_s), busy_s, wall_s)
    return out


def cell(ratio: Floats) -> dict[str, float]:
    """Median, mean, 90th percentile and bias of measured / predicted as an error of the prediction."""
    off = 1.0 / ratio - 1.0
    found = (np.median(abs(off)), abs(off).mean(), np.quantile(abs(off), 0.9), np.median(off))
    return dict(zip(("median", "mean", "p90", "bias"), (round(float(v), 4) for v in found), strict=True))


def groups(rows: Rows, ratios: Mapping[str, Floats]) -> dict[str, dict[str, dict[str, float]]]:
    """Errors of each metric over all rows, by task, device, number of devices, degrees and model."""
    jobs = rows.jobs
    words = {
        "all": ["all"] * len(jobs),
        "task": ["video" if j.model.is_video else "image" for j in jobs],
        "device": [j.device.name for j in jobs],
        "devices": [f"{j.num_devices} devices" for j in jobs],
        "degrees": [
            "one device" if j.num_devices == 1 else "ulysses" if j.ring == 1 else "ring" if j.ulysses == 1 else "both"
            for j in jobs
        ],
        "model": [j.model.name for j in jobs],
    }
    out: dict[str, dict[str, dict[str, float]]] = {}
    for metric, ratio in ratios.items():
        out[metric] = {}
        for by, listed in words.items():
            column = np.array(listed)
            for word in sorted(set(listed)):
                mask = column == word
                out[metric][word if by == "all" else f"{by}: {word}"] = {"rows": int(mask.sum()), **cell(ratio[mask])}
    return out


def write_errors(errors: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    """The errors among the checked-in ones, which the scorecard shows."""
    write_tables({**read_tables(), ONE_MODEL_LEFT_OUT: errors})


def main() -> None:
    """Fit, judge with each model left out, and write constants and errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    requested = parser.parse_args()
    rows = read(translated(read_table(requested.data / "energy" / "mlenergy_diffusion.csv")))
    everything = np.ones(len(rows.jobs), np.bool_)
    found = fit(rows, everything, np.log(np.array(list(START.values()))))
    predicted_s, by_row = np.empty(len(rows.jobs)), [constants(found)] * len(rows.jobs)
    for model in np.unique(rows.model):
        mine = rows.model == model
        left = constants(fit(rows, ~mine, found))
        predicted_s[mine] = rows.predicted_s(left)[mine]
        by_row = [left if m else c for m, c in zip(mine, by_row, strict=True)]
    watts = power_w(rows, by_row)
    batch = np.array([job.batch for job in rows.jobs])
    ratios = {
        "latency_s": rows.latency_s / predicted_s,
        "power_w": rows.power_w / watts,
        "energy_j_per_item": rows.energy_j / (watts * predicted_s / batch),
    }
    print("fitted", constants(found))
    print("in sample", cell(rows.latency_s / rows.predicted_s(constants(found))))
    errors = groups(rows, ratios)
    for metric, of in errors.items():
        for word, values in of.items():
            print(metric, word, values)
    models = len(np.unique(rows.model))
    at = f"xDiT: {len(rows.jobs)} rows of {models} models on H100 and B200; interval: one model left out"
    common = {"generation": "", "format": FORMAT, "engine": "pytorch", "from": "ml-energy", "at": at}
    rounded = {name: float(f"{value:.4g}") for name, value in constants(found).items()}
    entries = [
        {**common, "op": RUNTIME, "constants": rounded, "spread": quantiles(ratios["latency_s"])},
        {**common, "op": ENERGY, "constants": {}, "spread": quantiles(ratios["energy_j_per_item"])},
    ]
    folder = ROOT / "src/orrery/catalog/facts/calibrations"
    write_calibrations(folder / "diffusion.toml", "python tools/fit/diffusion.py", entries)
    write_errors(errors)


if __name__ == "__main__":
    main()

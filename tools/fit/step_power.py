"""Fit the law of a step's power to engines that ran at a known batch: ``python tools/fit/step_power.py [--data DIR]``.

Rows of ML.ENERGY's benchmark state the mean batch, the tokens a second and the power of all devices, so the step's time
is measured and only its work is predicted. The exponent is held: below a fifth the fit gives bytes away for nothing.
Every model is left out once; the errors there are the interval. ``--score`` only prints how the shipped law does: step,
power and joules a token by model, with everything predicted.
"""

import argparse
import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kernel_scores import quantiles, write_calibrations
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.formats import activations_for
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster
from orrery.kernels.energy import step_law
from orrery.kernels.energy.steps import peak_of
from orrery.scenario.resolve import cache_beside
from orrery.serving.clock import Ticks, steps_of, tick

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

PROMPT_TOKENS = {"lm-arena-chat": 120.0, "gpqa": 300.0}
"""Assumed: the table says "some 100 to 500", and lists none."""

DEVICES = {"H100": "h100-sxm", "B200": "b200"}
CONCAVE_POWER, LOSS_SCALE = 0.2, 0.1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """A row: what was run, what was measured, and the steps that carried no prompt and one prompt."""

    model: str
    deployment: Deployment
    ticks: Ticks
    prompt_share: float  # of the steps
    batch: float
    itl_s: float
    step_s: float  # measured: batch / tokens a second
    power_w: float  # of one device
    energy_j_per_token: float

    @property
    def predicted_s(self) -> float:
        """The mean step."""
        return self.mean(self.ticks.time_s)

    def mean(self, values: Floats) -> float:
        """Over steps without and with a prompt."""
        return float((1 - self.prompt_share) * values[0] + self.prompt_share * values[1])

    def roofs_s(self) -> tuple[float, float]:
        """Seconds of the mean step at the matrix units' and at the memory's full rate."""
        device = self.deployment.cluster.device
        kernels = [p for p in self.ticks.done.parts if p.once is not None]
        flops_s = sum(self.mean(p.count * np.asarray(p.once.flops)) / peak_of(device, p.format) for p in kernels)
        moved = sum(self.mean(p.count * np.asarray(p.once.bytes)) for p in kernels)
        return flops_s, moved / device.memory_bandwidth_bytes_per_s


def read(path: Path) -> Iterator[Run]:
    """The rows that the catalogue can describe; the others are named."""
    unknown: set[str] = set()
    with path.open() as file:
        for row in csv.DictReader(file):
            if row["task"] not in PROMPT_TOKENS:
                continue
            try:
                yield run_of(row)
            except OrreryError as error:
                unknown.add(f"{row['model_id']}: {error}")
    print("\n".join(sorted(unknown)))


def run_of(row: dict[str, str]) -> Run:
    """One row; where experts are spread, attention is tensor parallel over all devices."""
    device, model = get_device(DEVICES[row["gpu_model"]]), get_model(row["model_id"])
    engine, devices = get_engine("vllm", "0.11.1", device), int(row["num_gpus"])
    layout = Layout(tp=devices, ep=devices if int(row["expert_parallel"]) > 1 else 1)
    weights = model.weights_format
    activations = activations_for(weights, device)
    deployment = Deployment(
        model=model,
        cluster=Cluster(device=device, num_devices=devices, devices_per_node=device.devices_per_node),
        layout=layout,
        engine=engine,
        max_num_seqs=int(row["max_num_seqs"]),
        max_num_batched_tokens=8192,
        formats=Formats(
            weights=weights, activations=activations, kv=cache_beside(weights, activations, engine, device, model)
        ),
    )
    batch, output = float(row["avg_batch_size"]), float(row["avg_output_len"])
    prompt, one = PROMPT_TOKENS[row["task"]], np.array([0.0, 1.0])
    context = prompt + output / 2
    ticks = tick(deployment, steps_of(one, one * prompt, one * prompt, np.full(2, batch), np.full(2, context)))
    return Run(
        model=model.name,
        deployment=deployment,
        ticks=ticks,
        prompt_share=min(1.0, batch / output),
        batch=batch,
        itl_s=float(row["median_itl_ms"]) / 1e3,
        step_s=batch / float(row["output_throughput_tokens_per_sec"]),
        power_w=float(row["avg_power_watts"]) / devices,
        energy_j_per_token=float(row["energy_per_token_joules"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """All runs as arrays: shares of the two roofs over the measured step, and what they drew."""

    matrix_frac: Floats
    memory_frac: Floats
    idle_w: Floats
    span_w: Floats
    power_w: Floats
    model: NDArray[np.str_]

    def predicted_w(self, constants: Floats) -> Floats:
        """The law with these shares."""
        matrix, memory = constants
        share = matrix * self.matrix_frac**CONCAVE_POWER + memory * self.memory_frac**CONCAVE_POWER
        return self.idle_w + self.span_w * np.minimum(share, 1.0)


def arrays(runs: Iterable[Run]) -> Rows:
    """The runs side by side."""
    known = [(r, *r.roofs_s(), r.deployment.cluster.device) for r in runs]
    return Rows(
        matrix_frac=np.array([matrix_s / r.step_s for r, matrix_s, _, _ in known]),
        memory_frac=np.array([memory_s / r.step_s for r, _, memory_s, _ in known]),
        idle_w=np.array([d.idle_power_w for *_, d in known]),
        span_w=np.array([d.power_limit_w - d.idle_power_w for *_, d in known]),
        power_w=np.array([r.power_w for r, *_ in known]),
        model=np.array([r.model for r, *_ in known]),
    )


def fit(rows: Rows, mine: Flags) -> Floats:
    """The two shares that serve these rows best."""

    def residuals(x: Floats) -> Floats:
        return np.log(rows.predicted_w(x) / rows.power_w)[mine]

    return least_squares(residuals, [0.9, 0.3], bounds=([0, 0], [3, 2]), loss="soft_l1", f_scale=LOSS_SCALE).x


def cell(off: Floats) -> str:
    """Median, 90th percentile and bias in %."""
    return f"{np.median(abs(off)) * 100:.1f} / {np.quantile(abs(off), 0.9) * 100:.1f} ({np.median(off) * 100:+.1f})"


def score(runs: list[Run]) -> None:
    """Step, power and joules with everything predicted, by model."""
    off: dict[str, list[tuple[float, ...]]] = {}
    for r in runs:
        matrix_s, memory_s = r.roofs_s()
        law = step_law(r.deployment.cluster.device)
        power_w = law.power_w(law.matrix_weight * matrix_s, law.memory_weight * memory_s, r.predicted_s)
        joules = power_w * r.deployment.layout.num_devices * r.predicted_s / r.batch
        decode_s = float(r.ticks.time_s[0])
        errors = (decode_s / r.itl_s, r.predicted_s / r.step_s, power_w / r.power_w, joules / r.energy_j_per_token)
        off.setdefault(r.model, []).append(tuple(e - 1 for e in errors))
    everything = [e for found in off.values() for e in found]
    print("| model | rows | ITL | step | power | J/token |")
    for model, found in [*sorted(off.items()), ("all", everything)]:
        print(f"| {model} | {len(found)} | " + " | ".join(cell(np.array(c)) for c in zip(*found, strict=True)) + " |")


def main() -> None:
    """Fit, judge with each model left out, and write the constants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    parser.add_argument("--score", action="store_true", help="only print the errors of what is shipped")
    requested = parser.parse_args()
    runs = list(read(requested.data / "energy" / "mlenergy_llm_h100.csv"))
    if requested.score:
        return score(runs)
    rows = arrays(runs)
    ratio = np.ones(len(runs))
    for model in np.unique(rows.model):
        mine = rows.model == model
        ratio[mine] = (rows.power_w / rows.predicted_w(fit(rows, ~mine)))[mine]
        print(f"| {model} | left out: {cell(1 / ratio[mine] - 1)}")
    found = fit(rows, np.ones(len(runs), np.bool_))
    print(f"{found} fitted: {cell(rows.predicted_w(found) / rows.power_w - 1)}; left out: {cell(1 / ratio - 1)}")
    models = len(np.unique(rows.model))
    entry = {
        "generation": "",
        "op": "step_power",
        "format": "bf16",
        "engine": "vllm",
        "from": "ml-energy",
        "at": f"runs at a known batch on H100: {len(runs)} rows of {models} models; interval: one model left out",
        "constants": {
            "matrix_frac": round(float(found[0]), 4),
            "memory_frac": round(float(found[1]), 4),
            "concave_power": CONCAVE_POWER,
        },
        "spread": quantiles(ratio),
    }
    target = root / "src/orrery/catalog/facts/calibrations/step_power.toml"
    write_calibrations(target, "python tools/fit/step_power.py", [entry])
    return None


if __name__ == "__main__":
    main()

"""Fit recurrent mixers (gated delta nets, Kimi's delta attention, their convolutions) and write ``recurrent.toml``.

    python tools/fit/recurrent.py --data ../shared/data [--dry-run]

Only rows on the FIT side enter a constant; intervals come from the CALIBRATE side; errors are of the TEST side. No
number of heads and sequences stands on two sides. TensorRT-LLM's convolutions are those of Mamba 2; in the gated delta
nets' table their times do not depend on the channels that it names, and they are left out; and those of an earlier
SGLang on A100, which no law of bytes follows. A convolution of Kimi's is three, of which one table times a cold start:
the gated delta net's serve. TensorRT-LLM's decode kernel moves less than a state in FP32 would, so it is counted in 16
bits.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import tomli_w
from collective_rows import Floats, quantiles, summary
from kernel_scores import SOURCES
from numpy.typing import NDArray
from scipy.optimize import least_squares

from orrery.base.files import write_atomically
from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST
from orrery.evidence.split import side as side_of
from orrery.hardware.device import Device
from orrery.kernels.recurrent import _kernel as kernel

HOME = Path(__file__).parents[2]
FILE = HOME / "src/orrery/catalog/facts/calibrations/recurrent.toml"
SYSTEMS = {
    "a100_sxm": "a100-sxm-80gb",
    "b200_sxm": "b200",
    "gb200": "gb200",
    "gb300": "gb300",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
TABLES = {"gdn_perf__all": "gated-delta-net", "kda_perf__all": "kimi-delta"}
KERNELS = (
    "chunk_gated_delta_rule",
    "chunk_gated_delta_rule_flashinfer",
    "chunk_gated_delta_rule_triton",
    "flashkda_fwd",
    "chunk_kda",
    "chunk_kda_with_fused_gate",
    "fused_kda_decode",
    "fused_recurrent_gated_delta_rule_packed_decode",
    "fused_recurrent_gated_delta_rule",
    "fused_recurrent_kda_packed_decode",
    "causal_conv1d_fn",
    "causal_conv1d_update",
)
"""Which kernel speaks for an engine where a table has several of a kind: the first one."""

OLD_RELEASE = "0.5.10"
FEWEST = 10  # rows of a device that has constants of its own
HEAD, CONVOLUTION_TAPS, MOST = 128, 4, 250

# Where a constant is looked for, how far (natural logarithm) it is expected to lie from there, and its bounds.
START: dict[str, tuple[float, float, float, float]] = {
    "overhead_s": (8e-6, 1.0, 1e-7, 1e-3),
    "state_frac": (0.5, 0.7, 0.02, 1.0),
    "token_frac": (0.2, 1.0, 0.01, 1.0),
    "step_s": (2e-6, 1.0, 1e-8, 1e-4),
    "overlap_power": (1.3, 0.4, 0.5, 6.0),
    "chain_power": (1.3, 0.4, 0.3, 6.0),
    "cache_ratio": (2.0, 0.7, 0.5, 20.0),
}
NEAR = 0.6  # a device lies this much nearer to its kin than to nothing


@dataclass(frozen=True)
class Rows:
    """Rows of one kernel on one device."""

    device: Device
    op: str
    kind: str
    engine: str
    sizes: Mapping[str, Floats]
    time_s: Floats
    side: NDArray[np.str_]

    def on(self, side: str) -> "Rows":
        """Only the rows of one side."""
        return self.take(self.side == side)

    def take(self, here: NDArray[Any]) -> "Rows":
        """Only these rows."""
        sizes = {k: v[here] for k, v in self.sizes.items()}
        return Rows(self.device, self.op, self.kind, self.engine, sizes, self.time_s[here], self.side[here])

    @property
    def names(self) -> tuple[str, ...]:
        """The constants of this kernel."""
        if self.op.startswith("convolution"):
            return kernel.CONVOLUTION
        return kernel.DECODE if self.op.endswith("decode") else kernel.PREFILL

    def predict_s(self, constants: Mapping[str, float]) -> Floats:
        """The model's times."""
        c, d, s = np.array([constants[n] for n in self.names]), self.device, self.sizes
        machine = np.array([1.0, d.memory_bandwidth_bytes_per_s, d.num_compute_units, d.last_level_cache_bytes])
        out = np.empty(self.time_s.size)
        for i in range(out.size):
            if self.op.startswith("convolution"):
                out[i] = kernel.convolution_s(s["moved"][i], False, c, machine)[0]
            elif self.op.endswith("decode"):
                out[i] = kernel.decode_s(s["sequences"][i], s["state"][i], False, c, machine)[0]
            else:
                each = (s[k][i] for k in ("tokens", "sequences", "state", "width", "heads"))
                out[i] = kernel.prefill_s(*each, False, c, machine)[0]
        return out


def read_rows(folder: Path) -> list[Rows]:
    """Every kernel of the tables, one for each device, engine and phase."""
    found: dict[tuple[str, str, str, str], tuple[int, Rows]] = {}
    for table, kind in TABLES.items():
        path = folder / f"kernels_aiconfigurator/{table}.parquet"
        all_rows = duckdb.connect().execute(f"select * from '{path}' where phase != 'verify'").df()
        for (system, framework, name, phase), some in all_rows.groupby(
            ["system", "framework", "kernel_source", "phase"]
        ):
            engine, is_convolution = ENGINES[framework.lower()], name.startswith("causal_conv1d")
            is_odd = engine == "tensorrt-llm" or kind == "kimi-delta" or some.version.iloc[0] == OLD_RELEASE
            if name not in KERNELS or (is_convolution and is_odd):
                continue
            part = "convolution" if is_convolution else "recurrence"
            op = f"{part}_{'decode' if phase == 'generation' else 'prefill'}"
            rows = _rows(get_device(SYSTEMS[system]), op, "any" if is_convolution else kind, engine, some)
            key, rank = (rows.device.name, op, rows.kind, engine), KERNELS.index(name)
            if key not in found or rank < found[key][0]:
                found[key] = rank, rows
    return [*(rows for _, rows in found.values()), *mamba2(folder)]


def mamba2(folder: Path) -> list[Rows]:
    """The short convolution of Mamba 2 as TensorRT-LLM runs it: inputs, B and C of all groups. No table times its
    recurrence. Of prompts only single ones count: more take turns in this kernel, which no law of bytes follows.
    """
    path = folder / "kernels_aiconfigurator/mamba2_perf__all.parquet"
    columns = "*, nheads * head_dim + 2 * n_groups * d_state as width"
    table = (
        duckdb.connect().execute(f"select {columns} from '{path}' where phase = 'generation' or batch_size = 1").df()
    )
    out: list[Rows] = []
    for (system, phase), t in table.groupby(["system", "phase"]):
        op = f"convolution_{'decode' if phase == 'generation' else 'prefill'}"
        sequences, width = t.batch_size.to_numpy(float), t.width.to_numpy(float)
        tokens = sequences * (t.seq_len.to_numpy(float) if op.endswith("prefill") else 1.0)
        retained = 2.0 * sequences * width * (CONVOLUTION_TAPS - 1) * kernel.SIXTEEN_BIT_BYTES
        moved = 2.0 * tokens * width * kernel.SIXTEEN_BIT_BYTES + retained
        side = np.array([side_of([op, str(int(w)), str(int(n))]) for w, n in zip(width, tokens, strict=True)])
        sizes = {"tokens": tokens, "sequences": sequences, "moved": moved}
        device = get_device(SYSTEMS[str(system)])
        out.append(Rows(device, op, "any", "tensorrt-llm", sizes, t.latency.to_numpy(float) * 1e-3, side))
    return out


def _rows(device: Device, op: str, kind: str, engine: str, t: Any) -> Rows:
    sequences, length = t.batch_size.to_numpy(float), t.seq_len.to_numpy(float)
    keys, heads = t.num_k_heads.to_numpy(float), t.num_v_heads.to_numpy(float)
    width = (2 * keys + heads) * HEAD
    tokens = sequences * (length if op.endswith("prefill") else 1.0)
    state_size = 2.0 if engine == "tensorrt-llm" and op.endswith("decode") else 4.0
    retained = 2.0 * sequences * width * (CONVOLUTION_TAPS - 1) * kernel.SIXTEEN_BIT_BYTES
    sizes = {
        "tokens": tokens,
        "sequences": sequences,
        "width": width,
        "heads": heads,
        "state": heads * HEAD * HEAD * state_size,
        "moved": 2.0 * tokens * width * kernel.SIXTEEN_BIT_BYTES + retained,
    }
    words = zip(keys.astype(int), heads.astype(int), sequences.astype(int), strict=True)
    side = np.array([side_of([op, *map(str, w)]) for w in words])
    return Rows(device, op, kind, engine, sizes, t.latency.to_numpy(float) * 1e-3, side)


def thinned(rows: Rows, side: str) -> Rows:
    """At most so many rows of a side, drawn evenly over the logarithm of the time."""
    some = rows.on(side)
    if some.time_s.size <= MOST:
        return some
    bins = np.round(2 * np.log10(some.time_s)).astype(int)
    weight = 1.0 / np.array([np.sum(bins == b) for b in bins])
    rng = np.random.default_rng(7)
    return some.take(np.sort(rng.choice(bins.size, MOST, replace=False, p=weight / weight.sum())))


def fit(groups: list[Rows], centre: Mapping[str, float] | None = None) -> dict[str, float]:
    """Constants for the logarithm of the time, with a weak prior, robust against noisy rows."""
    names = groups[0].names
    middle = np.log([(centre or {}).get(n, START[n][0]) for n in names])
    width = np.array([START[n][1] * (NEAR if centre else 1.0) for n in names])
    low, high = (np.log([START[n][i] for n in names]) for i in (2, 3))
    rows = [thinned(g, FIT) for g in groups]

    def residual(x: Floats) -> Floats:
        c = dict(zip(names, np.exp(x), strict=True))
        off = np.concatenate([np.log(g.predict_s(c) / g.time_s) for g in rows]) / 0.05
        return np.concatenate([np.sign(off) * np.sqrt(2 * (np.sqrt(1 + off * off) - 1)), (x - middle) / width])

    start = np.clip(middle, low + 1e-3, high - 1e-3)
    found = least_squares(residual, start, diff_step=1e-3, max_nfev=40, bounds=(low, high))
    return {n: float(f"{np.exp(v):.5g}") for n, v in zip(names, found.x, strict=True)}


def ratio(rows: Rows, side: str, constants: Mapping[str, float]) -> Floats:
    """measured / predicted on one side."""
    some = rows.on(side)
    return some.time_s / some.predict_s(constants)


def family(groups: list[Rows]) -> list[dict[str, Any]]:
    """Entries of one kernel: for each device, each generation and everybody."""
    pool = fit(groups)
    own = {g.device.name: fit([g], pool) for g in groups}
    pooled = np.concatenate([ratio(g, CALIBRATE, own[g.device.name]) for g in groups])
    entries: list[dict[str, Any]] = []
    away: list[Floats] = []
    for name in sorted({g.device.generation for g in groups}):
        mine = [g for g in groups if g.device.generation == name]
        others = [g for g in groups if g.device.generation != name]
        stranger = fit(others) if others else pool
        away += [ratio(g, CALIBRATE, stranger) for g in mine]
        left: list[Floats] = []
        for g in mine:
            kin = fit([o for o in mine if o is not g], pool) if len(mine) > 1 else stranger
            left.append(ratio(g, CALIBRATE, kin))
            c = own[g.device.name]
            counts = [g.on(s).time_s.size for s in (FIT, CALIBRATE, TEST)]
            at = f"{g.op} of {g.kind} by {g.engine} on {g.device.name}: {min(counts[0], MOST)} rows fitted, "
            at += f"{counts[1]} for the interval, {counts[2]} tested"
            if counts[0] < FEWEST:
                c = kin  # too few rows to speak for themselves
            else:
                entries.append(entry({"device": g.device.name}, [g], c, [ratio(g, CALIBRATE, c), pooled], at))
            print(
                f"{g.op:20s} {g.kind:15s} {g.engine:12s} {g.device.name:20s} {summary(ratio(g, TEST, c))}   "
                f"{summary(ratio(g, TEST, kin))}"
            )
        at = f"pooled over {', '.join(g.device.name for g in mine)}; interval of each left out"
        entries.append(entry({"generation": name}, mine, fit(mine, pool), [np.concatenate(left), pooled], at))
    at = f"pooled over {', '.join(g.device.name for g in groups)}; interval of each generation left out"
    entries.append(entry({"generation": ""}, groups, pool, [np.concatenate(away), pooled], at))
    return entries


def entry(
    owner: Mapping[str, str], groups: list[Rows], constants: Mapping[str, float], ratios: list[Floats], at: str
) -> dict[str, Any]:
    """One calibration."""
    first = groups[0]
    spans = {
        n: [float(min(g.sizes[n].min() for g in groups)), float(max(g.sizes[n].max() for g in groups))]
        for n in ("tokens", "sequences")
    }
    return {
        **owner,
        "op": first.op,
        "format": first.kind,
        "engine": first.engine,
        "from": "aiconfigurator",
        "at": at,
        "constants": dict(constants),
        "spread": quantiles(*ratios),
        "range": spans,
    }


def main() -> None:
    """Fit, report, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HOME.parent / "shared/data")
    parser.add_argument("--dry-run", action="store_true", help="print the errors, write nothing")
    options = parser.parse_args()
    rows = read_rows(options.data)
    print("kernel, kind, engine, device: median mean p90 bias rows   the same with the device left out")
    entries: list[dict[str, Any]] = []
    for key in sorted({(r.op, r.kind, r.engine) for r in rows}):
        entries += family([r for r in rows if (r.op, r.kind, r.engine) == key])
    if not options.dry_run:
        sources = {"aiconfigurator": SOURCES["aiconfigurator"]}
        text = tomli_w.dumps({"sources": sources, "calibration": entries})
        write_atomically(FILE, f"# made by: python tools/fit/recurrent.py\n{text}")


if __name__ == "__main__":
    main()

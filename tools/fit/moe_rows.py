"""The rows of the measured tables of experts as the MoE rule takes them, by device, format, back end and engine.

``kernels/moe.csv.gz``, ``kernel_power.csv.gz``, the large tables of ``kernels_aiconfigurator`` and the tuned kernels of
``kernels_aiter``; groups of many rows are sampled, evenly over octaves of tokens and over slices of experts, seeded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orrery.catalog.backends import backend_of_kernel
from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST, side
from orrery.kernels.moe import _kernel as kernel
from orrery.kernels.moe.rule import Prepared, columns, machine_vector, prepared
from orrery.kernels.ops import MoE
from orrery.numerics.registry import get_format

Floats = NDArray[np.float64]

SIZES = ("tokens", "hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep", "skew")
MIN_ROWS = 50
MAX_ROWS = {FIT: 1400, CALIBRATE: 500, TEST: 900}
"""Rows of a device, format, back end and engine on each side, at most."""

SYSTEMS = {
    "a100_sxm": "a100-sxm-80gb",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200",
    "gb200": "gb200",
    "gb300": "gb300",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
    "b60": "arc-pro-b60",
}
FORMATS = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "int4_wo": "int4_weight_only",
    "nvfp4": "nvfp4",
    "w4a16_mxfp4": "mxfp4_weight_only",
    "w4a8_mxfp4_mxfp8": "mxfp4_mxfp8",
}
ENGINES = {"SGLang": "sglang", "VLLM": "vllm", "TRTLLM": "tensorrt-llm"}

UNSAID_GATES = "(hidden_size = 2688 and inter_size = 1856) or topk = 22"
"""Shapes of models without a gate: vLLM's and SGLang's rows do not say whether they were measured with one."""

UNTUNED = """kernel_source = 'vllm_modeloptfp8moe_flashinfer_cutlass_flashinferexperts' and
    system in ('h100_sxm', 'h200_sxm')"""
"""FlashInfer's CUTLASS experts in FP8 on Hopper as no engine runs them: vLLM lets FlashInfer choose their tiles when it
starts (model_executor/warmup/kernel_warmup.py), these rows take 3 to 6 times what the same kernels take in TensorRT-LLM
at the same sizes on the same device, and twice what 16-bit experts take in vLLM; every other format and device is
within 1.0 to 1.6 of TensorRT-LLM's."""

AITER_DEVICES = {304: "mi300x", 256: "mi350x"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The rows of one device, format, back end and engine."""

    device: str
    generation: str
    format: str
    engine: str  # "triton@vllm": the back end, as that engine runs it
    op: tuple[MoE, MoE]  # plain blocks, gated blocks
    order: NDArray[np.int64]  # where the rows of the two stand
    machine: Floats
    time_s: Floats
    side: NDArray[np.str_]

    def predict(self, constants: Floats) -> Floats:
        """Seconds of every row."""
        return np.concatenate([self._seconds(half, constants) for half in self._halves])[self.order]

    @cached_property
    def _halves(self) -> list[tuple[float, Prepared]]:
        """What the kernel takes, looked up once: plain blocks and gated blocks."""
        return [(1.0 + op.is_gated, prepared(op)) for op in self.op if np.size(op.tokens)]

    def _seconds(self, half: tuple[float, Prepared], constants: Floats) -> Floats:
        ups, (sizes, which, tables) = half
        out = np.zeros((which.size, kernel.COLUMNS))
        kernel.many(*sizes, ups, which, tables, constants, self.machine, out)
        return out[:, kernel.TIME]

    def learnable(self, constants: Floats) -> tuple[Floats, Floats]:
        """Physical seconds, and what a learned correction may know, of every row."""
        both = [columns(op, constants, self.machine, has_features=True) for op in self.op]
        joined = np.concatenate(both, axis=1)[:, self.order]
        return joined[kernel.TIME], np.ascontiguousarray(joined[kernel.COLUMNS :].T)

    def slices(self) -> NDArray[np.int64]:
        """A number for every slice of experts, equal where the weights on the device are."""
        return np.unique(sizes_of(self)[1:7].T, axis=0, return_inverse=True)[1].ravel()

    def roofs(self) -> tuple[Floats, Floats]:
        """Compute and memory roof of every row."""
        ones = np.ones(len(kernel.CONSTANTS))
        both = np.concatenate([columns(op, ones, self.machine) for op in self.op], axis=1)[:, self.order]
        return both[kernel.COMPUTE], both[kernel.MEMORY]

    def take(self, keep: NDArray[np.bool_]) -> "Rows":
        """Only these rows."""
        gated = self._gated()[keep]
        return _rows(
            (self.device, self.format, self.engine), sizes_of(self)[:, keep], gated, self.time_s[keep], self.side[keep]
        )

    def _gated(self) -> NDArray[np.bool_]:
        return self.order >= np.size(self.op[0].tokens)


def _rows(
    key: tuple[str, str, str], sizes: Floats, gated: NDArray[np.bool_], time_s: Floats, sides: NDArray[np.str_]
) -> Rows:
    device = get_device(key[0])
    ops = tuple(_op(sizes[:, gated == want], key[1], want) for want in (False, True))
    return Rows(
        device=key[0],
        generation=device.generation,
        format=key[1],
        engine=key[2],
        op=(ops[0], ops[1]),
        order=np.argsort(np.argsort(gated, kind="stable"), kind="stable"),
        machine=machine_vector(device, get_format(key[1])),
        time_s=time_s,
        side=sides,
    )


def sizes_of(rows: Rows) -> Floats:
    """The sizes of every row, a line each in the order of SIZES."""
    return np.concatenate([np.array([getattr(op, s) for s in SIZES]) for op in rows.op], axis=1)[:, rows.order]


def _op(sizes: Floats, format: str, is_gated: bool) -> MoE:
    return MoE(**dict(zip(SIZES, sizes, strict=True)), format=format, is_gated=is_gated)


MIN_DEALT = 6
"""Shapes beside those that score from which a group's are dealt anew where the hash left one to fit: one shape does not
tell a law of ten constants."""


def engine_of(engine: str, kernel_name: str, format: str) -> str:
    """Whose constants price a measured kernel: its back end, as that engine runs it."""
    backend = backend_of_kernel("moe", kernel_name, format)
    return f"{backend}@{engine}" if backend else engine


def skew_of(routing: str) -> float:
    """``power_law_1.2`` -> 1.2; balanced or blank -> 0."""
    return float(routing.removeprefix("power_law_")) if routing.startswith("power_law_") else 0.0


def read(data: Path) -> list[Rows]:
    """Every group with rows enough to fit."""
    frame = pd.concat([*_plain(data / "kernels"), *_large(data / "kernels_aiconfigurator"), *_aiter(data)])
    frame["side"] = _sides(frame)
    return list(_groups(frame))


def _plain(folder: Path) -> Iterator[pd.DataFrame]:
    for name in ("moe.csv.gz", "kernel_power.csv.gz"):
        yield duckdb.sql(f"""
            select device, format, engine, kernel, routing, gated_ffn = 'true' as gated, time_s::double as time_s,
                   tokens::double as tokens, hidden_size::double as hidden_size, ffn_size::double as ffn_size,
                   num_experts::double as num_experts, experts_per_token::double as experts_per_token,
                   coalesce(tp::double, 1) as tp, coalesce(ep::double, 1) as ep
            from read_csv('{folder / name}', all_varchar = true) where op = 'moe' """).df()


def _large(folder: Path) -> Iterator[pd.DataFrame]:
    for path in sorted(folder.glob("moe_perf__*.parquet")):
        frame = duckdb.sql(f"""
            select system, framework, moe_dtype, kernel_source as kernel, distribution as routing,
                   latency / 1e3 as time_s, num_tokens::double as tokens, hidden_size::double as hidden_size,
                   inter_size::double as ffn_size, num_experts::double as num_experts,
                   topk::double as experts_per_token, moe_tp_size::double as tp, moe_ep_size::double as ep,
                   not contains(kernel_source, 'nongated') as gated
            from '{path}' where latency > 0 and (framework = 'TRTLLM' or not ({UNSAID_GATES}))
            and not ({UNTUNED}) """).df()
        frame["device"] = frame.system.map(SYSTEMS)
        frame["format"] = frame.moe_dtype.map(FORMATS)
        frame["engine"] = frame.framework.map(ENGINES)
        yield frame.dropna(subset=["device", "format", "engine"])


def _aiter(data: Path) -> Iterator[pd.DataFrame]:
    """AMD's tuned kernels: the best of a search, a floor of what an engine reaches."""
    path = data / "kernels_aiter" / "fused_moe.parquet"
    if not path.exists():
        return
    frame = duckdb.sql(f"""
        select cu_num, q_dtype_a, q_dtype_w, q_type, us / 1e6 as time_s, token::double as tokens,
               model_dim::double as hidden_size, inter_dim::double as ffn_size, expert::double as num_experts,
               topk::double as experts_per_token, use_g1u1 = 1 as gated
        from '{path}' where us > 0 and cu_num in (304, 256) and coalesce(gfx, '') <> 'gfx1250' """).df()
    frame["device"] = frame.cu_num.map(AITER_DEVICES)
    frame["format"] = [_aiter_format(*r) for r in zip(frame.q_dtype_a, frame.q_dtype_w, frame.q_type, strict=True)]
    frame["engine"], frame["kernel"], frame["routing"], frame["tp"], frame["ep"] = (
        "aiter",
        "aiter",
        "balanced",
        1.0,
        1.0,
    )
    yield frame[frame.format != ""]


def _aiter_format(activations: str, weights: str, scales: str) -> str:
    if "float4" in weights:
        return "mxfp4_mxfp8" if "float8" in activations else "mxfp4" if "float4" in activations else ""
    if "int4" in weights:
        return "int4_weight_only"
    if "float8" in weights:
        return "fp8_block" if "128" in scales else "mxfp8" if "1x32" in scales else "fp8"
    return "bf16" if "bfloat16" in weights else ""


SHAPE = ("hidden_size", "ffn_size", "num_experts", "experts_per_token", "tp", "ep")


def _sides(frame: pd.DataFrame) -> NDArray[np.str_]:
    """By the hash that every table is split by, whose words are those of the columns."""

    @cache
    def of(shape: tuple[float, ...]) -> str:
        return side([str(int(x)) for x in shape])

    return np.array([of(shape) for shape in zip(*(frame[c] for c in SHAPE), strict=True)])


def _dealt(mine: pd.DataFrame) -> pd.DataFrame:
    """The rows with the shapes that fit constants and those that set intervals dealt anew where one alone would fit:
    every third, in order, sets the interval. The rows that score stay what they are."""
    told = mine[mine.side != TEST]
    shapes = sorted(set(told[list(SHAPE)].itertuples(index=False, name=None)))
    fitted = told[told.side == FIT][list(SHAPE)].drop_duplicates()
    if len(fitted) != 1 or len(shapes) < MIN_DEALT:
        return mine
    dealt = {shape: CALIBRATE if number % 3 == 1 else FIT for number, shape in enumerate(shapes)}
    every = zip(mine[list(SHAPE)].itertuples(index=False, name=None), mine.side, strict=True)
    return mine.assign(side=[was if was == TEST else dealt[shape] for shape, was in every])


def _groups(frame: pd.DataFrame) -> Iterator[Rows]:
    frame["key"] = [engine_of(*r) for r in zip(frame.engine, frame.kernel, frame.format, strict=True)]
    frame["skew"] = frame.routing.map(skew_of)
    generator = np.random.default_rng(16)
    for (device, format, key), mine in frame.groupby(["device", "format", "key"]):
        if len(mine) < MIN_ROWS:
            continue
        sided = _dealt(mine).groupby("side")
        retained = pd.concat([_sample(part, MAX_ROWS[str(name)], generator) for name, part in sided])
        sizes = retained[list(SIZES)].to_numpy(dtype=np.float64).T
        yield _rows(
            (str(device), str(format), str(key)),
            sizes,
            retained.gated.to_numpy(dtype=bool),
            retained.time_s.to_numpy(),
            retained.side.to_numpy(dtype=np.str_),
        )


def _sample(part: pd.DataFrame, most: int, generator: np.random.Generator) -> pd.DataFrame:
    """At most so many rows, each octave of tokens and each slice of experts with about the same share."""
    if len(part) <= most:
        return part
    cell = part.groupby([np.floor(np.log2(part.tokens)), *SHAPE, "skew"], sort=False).ngroup()
    octave = np.floor(np.log2(part.tokens))
    weight = 1.0 / (part.groupby(octave).tokens.transform("size") * part.groupby(cell).tokens.transform("size"))
    chosen = generator.choice(len(part), most, replace=False, p=(weight / weight.sum()).to_numpy())
    return part.iloc[np.sort(chosen)]


def screen(rows: Rows) -> tuple[Rows, int]:
    """Drop what beats the datasheet's rate, or its bandwidth where the experts hit cannot sit in the cache."""
    compute_s, memory_s = rows.roofs()
    cached_s = rows.machine[3] / rows.machine[2]
    beats = (rows.time_s < compute_s) | (rows.time_s < memory_s - cached_s)
    return rows.take(~beats), int(beats.sum())


def on(rows: Rows, side: str) -> Rows:
    """The rows of one side."""
    return rows.take(rows.side == side)

"""The words of a measured table: its kinds, the columns that hold measurements, and which cells a row needs.

A measurement is a metric of the schema, plain (the mean over requests) or with a percentile suffix: ``ttft_s``,
``ttft_s_p99``. The definitions are those of docs/metrics.md.
"""

import re
from collections.abc import Iterable

from orrery.base.errors import nearest

METRICS: dict[str, tuple[str, ...]] = {
    "kernel": ("time_s", "power_w"),
    "collective": ("time_s",),
    "serving": (
        "output_tokens_per_s",
        "total_tokens_per_s",
        "requests_per_s",
        "ttft_s",
        "tpot_s",
        "itl_s",
        "latency_s",
        "decode_tokens_per_s",
        "power_w",
        "peak_memory_bytes",
        "kv_cache_tokens",
    ),
    "diffusion": ("latency_s", "power_w", "energy_j_per_item"),
    "workload": (
        "latency_s",
        "images_per_s",
        "embeddings_per_s",
        "samples_per_s",
        "audio_s_per_s",
        "encoder_s",
        "decoder_step_s",
        "power_w",
    ),
    "training": (
        "step_time_s",
        "tokens_per_s_per_device",
        "model_flops_per_s_per_device",
        "mfu_frac",
        "peak_memory_bytes",
        "micro_step_time_s",
    ),
}
"""Columns that hold a measurement, by kind of row."""

FITS = "fits"
"""The metric of outcome rows: did it run (1), or did the memory not suffice (0)? An error is 0 (right) or 1."""

PERCENTILE = re.compile(r"_p\d{1,2}(?:\.\d+)?$")

OUTCOME_COLUMNS = ("status", "outcome")
RAN = frozenset({"", "ok", "success", "completed", "done", "ran"})
OUT_OF_MEMORY = frozenset({"oom", "out_of_memory", "out-of-memory", "out of memory", "does_not_fit"})

NEEDED: dict[str, tuple[str, ...]] = {
    "kernel": ("device", "op", "format"),
    "collective": ("device", "collective", "num_devices"),
    "serving": ("model", "device", "mode"),
    "diffusion": ("model", "device"),
    "workload": ("model", "device"),
    "training": (),
}
"""Columns without which no row of a kind can be understood."""

DESCRIBING = frozenset(
    {
        "kind",
        "source",
        "note",
        "model",
        "device",
        "num_devices",
        "tp",
        "pp",
        "dp",
        "ep",
        "weights_format",
        "activations_format",
        "kv_format",
        "engine",
        "engine_version",
        "mode",
        "input_tokens",
        "output_tokens",
        "input_tokens_std",
        "output_tokens_std",
        "dataset",
        "batch_size",
        "concurrency",
        "request_rate_per_s",
        "num_requests",
        "num_distinct_prompts",
        "max_num_seqs",
        "max_num_batched_tokens",
        "scheduler_recv_interval",
        "all2all_backend",
        "num_redundant_experts",
        "gpu_memory_utilization_frac",
        "measured_date",
        "technique",
        "status",
        "outcome",
        "op",
        "format",
        "collective",
        "height",
        "width",
        "num_frames",
        "num_inference_steps",
        "ulysses_degree",
        "ring_degree",
        "audio_s",
        "num_beams",
        "window_batch",
        "campaign",
    }
)
"""Columns that say what was run."""

_OTHER_UNITS = {
    "s": ("ms", "us", "ns", "sec", "secs", "seconds", "msec", "usec", "min", "milliseconds", "microseconds"),
    "w": ("mw", "kw", "watts", "watt"),
    "bytes": ("b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "bits"),
    "frac": ("pct", "percent", "%"),
}
_EXAMPLES = {"s": "0.0125 for 12.5 ms", "w": "350 for 0.35 kW", "bytes": "8e10 for 80 GB", "frac": "0.45 for 45 %"}


def base_metric(column: str) -> str:
    """The metric that a column measures, without its percentile: ``ttft_s_p99`` measures ``ttft_s``."""
    return PERCENTILE.sub("", column)


def measured_columns(kind: str, columns: list[str]) -> list[str]:
    """The columns of a table that hold measurements of that kind of row."""
    return [c for c in columns if base_metric(c) in METRICS[kind]]


def likest(column: str, present: Iterable[str]) -> str:
    """The column of a table that was probably meant by one that it lacks: a name of its own that looks alike, or ""."""
    measures = {m for metrics in METRICS.values() for m in metrics}
    own = [c for c in present if c not in DESCRIBING and base_metric(c) not in measures]
    whole = [c for c in own if column in c.casefold() or (len(c) > 2 and c.casefold() in column)]
    return next(iter((*whole, *nearest(column, own, 1))), "")


def mistaken_for(column: str, kind: str) -> tuple[str, str] | None:
    """(the column meant, an example) where a name is a metric in another unit or none: ``ttft_ms``, ``Time (us)``."""
    word = re.sub(r"[^a-z0-9%]+", "_", column.casefold()).strip("_")
    word = re.sub(r"_(?:p\d{1,2}|mean|avg|median)(?=_|$)|^(?:p\d{1,2}|mean|avg|median)_", "", word)
    for metric in (*METRICS[kind], *(("message_bytes",) if kind == "collective" else ())):
        stem, _, unit = metric.rpartition("_")
        others = _OTHER_UNITS.get(unit, ())
        if word in {stem, *(f"{stem}_{u}" for u in others), *(stem + u for u in others)} and stem not in ("", "mfu"):
            return metric, f"in {_UNIT_WORD[unit]} ({_EXAMPLES[unit]})" if unit in _EXAMPLES else f"in {unit}"
    return None


_UNIT_WORD = {"s": "seconds", "w": "watts", "bytes": "bytes", "frac": "parts of one"}

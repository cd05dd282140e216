"""Fit the attention rules to the measured tables and write ``facts/calibrations/attention_*.toml``.

    python tools/fit/attention.py --data ../shared/data

Constants come from rows on the fit side, intervals from the calibrate side, the printed errors from the test side.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from attention_fit import Floats, Rule, own_entries, pooled_entries, read_groups, write
from numpy.typing import NDArray
from wide_tables import measured

from orrery.hardware.device import Device
from orrery.kernels.attention import _kernel as kernel
from orrery.kernels.attention import decode, encoder, prefill
from orrery.kernels.attention.choice import Choice, matrix_peak_flops_per_s
from orrery.kernels.attention.features import _kernel as features_kernel
from orrery.numerics.registry import get_format


def choice_of(device: Device, format: str, kv_format: str) -> Choice:
    """The roofs of a measured row; its constants are still to be found."""
    compute, kv = get_format(format), get_format(kv_format)
    return Choice(
        calibration=None,  # type: ignore[arg-type]
        peak_flops_per_s=matrix_peak_flops_per_s(device, compute),
        element_bytes=compute.bytes_per_element,
        kv_element_bytes=kv.bytes_per_element,
    )


def _prefill_rows(columns: list[NDArray[np.int64]], machine: Floats, vector: Floats) -> Floats:
    return kernel.prefill(*columns, True, machine, vector)


def _decode_rows(columns: list[NDArray[np.int64]], machine: Floats, vector: Floats) -> Floats:
    return kernel.decode(*columns, False, machine, vector)


def _prefill_features(columns: list[NDArray[np.int64]], machine: Floats, vector: Floats) -> Floats:
    return features_kernel.prefill_features(*columns, True, machine, vector, np.empty((6, columns[0].size)))


def _decode_features(columns: list[NDArray[np.int64]], machine: Floats, vector: Floats) -> Floats:
    return features_kernel.decode_features(*columns, False, machine, vector, np.empty((6, columns[0].size)))


PREFILL = Rule(
    op="attention_prefill",
    constants={
        "launch_s": (12e-6, 1e-6, 1e-4),
        "product_64_frac": (0.5, 0.02, 1.0),
        "product_128_frac": (0.6, 0.02, 1.0),
        "product_192_frac": (0.6, 0.02, 1.0),
        "product_256_frac": (0.6, 0.02, 1.0),
        "memory_frac": (0.7, 0.3, 1.0),
        "entry_frac": (0.5, 0.05, 5.0),
        "tile_blocks": (2.0, 0.01, 20.0),
        "edge_blocks": (0.5, 0.01, 8.0),
        "cache_ratio": (0.5, 0.05, 4.0),
    },
    builds=[
        {"query_tile": q, "key_tile": k, "packs_groups": packs, "row_granule": granule}
        for q, k in ((128.0, 128.0), (64.0, 64.0), (128.0, 64.0), (256.0, 128.0))
        for packs in (0.0, 1.0)
        for granule in (16.0, q)
    ],
    columns=(
        "batch",
        "query_tokens",
        "context_tokens",
        "num_heads",
        "num_kv_heads",
        "head_size",
        "value_head_size",
        "window_tokens",
    ),
    machine=lambda device, format, kv: prefill.machine(device, choice_of(device, format, kv)),
    vector=prefill.vector,
    rows=_prefill_rows,
    features=_prefill_features,
    feature_names=features_kernel.PREFILL_FEATURES,
    shape=("num_heads", "num_kv_heads", "head_size", "window_tokens"),
)


def _encoder_rows(columns: list[NDArray[np.int64]], machine: Floats, vector: Floats) -> Floats:
    return kernel.prefill(*encoder.padded(columns, vector), False, machine, vector)


def _encoder_features(columns: list[NDArray[np.int64]], machine: Floats, vector: Floats) -> Floats:
    wide = encoder.padded(columns, vector)
    return features_kernel.prefill_features(*wide, False, machine, vector, np.empty((6, columns[0].size)))


ENCODER = replace(
    PREFILL,
    op=encoder.OP,
    vector=encoder.vector,
    rows=_encoder_rows,
    features=_encoder_features,
    builds=[
        {
            "query_tile": q,
            "key_tile": k,
            "packs_groups": 0.0,
            "row_granule": 16.0,
            "size_granule": size,
            "odd_granule": odd,
        }
        for size, odd in ((8.0, 8.0), (16.0, 16.0), (64.0, 64.0), (16.0, 256.0), (64.0, 256.0))
        for q, k in ((128.0, 128.0), (64.0, 64.0), (128.0, 64.0), (256.0, 128.0))
    ],
    shape=("num_heads", "head_size"),
)
"""Heads of 72 and 80 are padded to 8, 16 or a power of two; those of 72 may run in another kernel."""

DECODE = Rule(
    op="attention_decode",
    constants={
        "launch_s": (8e-6, 1e-6, 1e-4),
        "memory_frac": (0.8, 0.3, 1.0),
        "feed_ratio": (1.5, 0.1, 10.0),
        "start_keys": (60.0, 0.1, 2000.0),
        "again_s": (2e-6, 1e-7, 2e-5),
        "split_keys": (128.0, 16.0, 4096.0),
        "cache_ratio": (0.5, 0.05, 4.0),
        "head_feed_ratio": (0.5, 0.02, 10.0),
        "head_start_keys": (20.0, 0.1, 2000.0),
        "entry_frac": (0.5, 0.02, 5.0),
    },
    builds=[
        {"widest_group": w, "parts_single": p, "copies_queries": c, "enters_apart": a, "splits_blindly": b}
        for w, p, c in ((0, 0, 0), (0, 0, 1), (16, 0, 0), (32, 0, 0), (32, 1, 0))
        for a, b in ((0, 0), (1, 0), (0, 1), (1, 1))
        if w or not a
    ],
    columns=("batch", "context_tokens", "num_heads", "num_kv_heads", "head_size", "window_tokens", "query_tokens"),
    machine=lambda device, format, kv: decode.machine(device, choice_of(device, format, kv)),
    vector=decode.vector,
    rows=_decode_rows,
    features=_decode_features,
    feature_names=features_kernel.DECODE_FEATURES,
    shape=("num_heads", "num_kv_heads", "head_size", "window_tokens"),
)


def main() -> None:
    """Fit, print and write both rules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / ".." / "shared" / "data")
    parser.add_argument("--only", choices=("attention_prefill", "attention_encoder", "attention_decode"))
    arguments = parser.parse_args()
    for rule in (PREFILL, ENCODER, DECODE):
        if arguments.only in (None, rule.op):
            groups, screened = read_groups(measured(arguments.data, rule.op), rule)
            print(f"{rule.op}: {screened} rows beat a datasheet bound and are left out")
            print(f"{'':48s}median   mean    p90   bias   rows")
            entries, own = own_entries(rule, groups)
            write(rule, "attention.py", entries + pooled_entries(rule, groups, own))


if __name__ == "__main__":
    main()

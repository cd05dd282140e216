"""Fit the latent-attention rules to the measured tables and write ``facts/calibrations/mla_*.toml``.

    python tools/fit/latent.py --data ../shared/data

Constants come from rows on the fit side, intervals from the calibrate side, the printed errors from the test side.
"""

import argparse
from pathlib import Path

import numpy as np
from attention import choice_of
from attention_fit import Floats, Rule, own_entries, pooled_entries, read_groups, stored, write
from numpy.typing import NDArray
from wide_tables import measured

from orrery.kernels.attention import _kernel as softmax_kernel
from orrery.kernels.attention import decode as softmax_decode
from orrery.kernels.attention import prefill as softmax_prefill
from orrery.kernels.attention.features import _kernel as features_kernel
from orrery.kernels.latent import _kernel as kernel
from orrery.kernels.latent import absorb, decode, prefill

Columns = list[NDArray[np.int64]]


def _prefill_rows(columns: Columns, machine: Floats, vector: Floats) -> Floats:
    return softmax_kernel.prefill(*columns, np.zeros_like(columns[0]), True, machine, vector)


def _decode_rows(columns: Columns, machine: Floats, vector: Floats) -> Floats:
    return kernel.decode(*columns, False, machine, vector)


def _prefill_features(columns: Columns, machine: Floats, vector: Floats) -> Floats:
    whole = (*columns, np.zeros_like(columns[0]))
    return features_kernel.prefill_features(*whole, True, machine, vector, np.empty((6, columns[0].size)))


def _decode_features(columns: Columns, machine: Floats, vector: Floats) -> Floats:
    return kernel.decode_features(*columns, False, machine, vector, np.empty((6, columns[0].size)))


def _absorb_rows(columns: Columns, machine: Floats, vector: Floats) -> Floats:
    return kernel.absorb(*columns, False, machine, vector)


PREFILL = Rule(
    op="mla_prefill",
    constants={
        "launch_s": (15e-6, 1e-6, 1e-4),
        "product_frac": (0.6, 0.02, 1.0),
        "memory_frac": (0.7, 0.3, 1.0),
        "entry_frac": (0.5, 0.02, 5.0),
        "tile_blocks": (2.0, 0.01, 20.0),
        "cache_ratio": (0.5, 0.05, 4.0),
    },
    builds=[
        {"query_tile": q, "key_tile": k, "row_granule": granule}
        for q, k in ((128.0, 128.0), (64.0, 64.0), (128.0, 64.0), (256.0, 128.0))
        for granule in (16.0, q)
    ],
    columns=("batch", "query_tokens", "context_tokens", "num_heads", "num_heads", "head_size", "value_head_size"),
    machine=lambda device, format, kv: softmax_prefill.machine(device, choice_of(device, format, kv)),
    vector=prefill.vector,
    rows=_prefill_rows,
    features=_prefill_features,
    feature_names=features_kernel.PREFILL_FEATURES,
    shape=("num_heads", "batch"),
)

DECODE = Rule(
    op="mla_decode",
    constants={
        "launch_s": (11e-6, 1e-6, 1e-4),
        "memory_frac": (0.8, 0.3, 1.0),
        "feed_ratio": (1.5, 0.1, 10.0),
        "product_frac": (0.3, 0.01, 1.0),
        "start_latents": (60.0, 0.1, 2000.0),
        "again_s": (2e-6, 1e-7, 2e-5),
        "split_keys": (128.0, 16.0, 4096.0),
        "cache_ratio": (0.5, 0.05, 4.0),
        "entry_frac": (0.5, 0.02, 5.0),
    },
    builds=[{"row_tile": tile} for tile in (16.0, 64.0, 128.0)],
    columns=("batch", "context_tokens", "num_heads", "head_size", "value_head_size", "query_tokens"),
    machine=lambda device, format, kv: softmax_decode.machine(device, choice_of(device, format, kv)),
    vector=decode.vector,
    rows=_decode_rows,
    features=_decode_features,
    feature_names=kernel.DECODE_FEATURES,
    shape=("num_heads", "batch"),
    restarts=({"cache_ratio": 2.0, "split_keys": 512.0, "start_latents": 20.0},),
)

ABSORB = [
    Rule(
        op=op,
        constants={
            "launch_s": (4e-6, 1e-6, 1e-4),
            "product_frac": (0.6, 0.02, 1.0),
            "memory_frac": (0.7, 0.3, 1.0),
            "start_depth": (100.0, 1.0, 5000.0),
            "cache_ratio": (0.5, 0.05, 4.0),
            "entry_frac": (0.5, 0.02, 5.0),
        },
        builds=[{"enters": kind} for kind in (0.0, 1.0, 2.0)],
        columns=("m", "n", "k", "batch"),
        machine=lambda device, format, kv: absorb.machine(device, format),
        vector=absorb.vector,
        rows=_absorb_rows,
        restarts=({"cache_ratio": 2.0}, {"cache_ratio": 2.0, "launch_s": 6e-6, "memory_frac": 0.9}),
    )
    for op in ("mla_absorb_query", "mla_absorb_value")
]


def main() -> None:
    """Fit, print and write every rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / ".." / "shared" / "data")
    parser.add_argument("--only")
    parser.add_argument("--trees-only", action="store_true", help="keep the constants; train the trees again")
    arguments = parser.parse_args()
    for rule in (PREFILL, DECODE, *ABSORB):
        if arguments.only in (None, rule.op):
            groups, screened = read_groups(measured(arguments.data, rule.op), rule)
            print(f"{rule.op}: {screened} rows beat a datasheet bound and are left out")
            print(f"{'':48s}median   mean    p90   bias   rows")
            known = stored(rule) if arguments.trees_only else []
            entries, own = own_entries(rule, groups, known)
            pooled = [e for e in known if "generation" in e] or pooled_entries(rule, groups, own)
            write(rule, "latent.py", entries + pooled)


if __name__ == "__main__":
    main()

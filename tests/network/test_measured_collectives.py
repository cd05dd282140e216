"""How well the shipped constants repeat measured collectives, on rows that entered no fit."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import read_table
from orrery.network import Collective, TokenExchange, predict

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")) / "kernels"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="measured tables are not here; set ORRERY_DATA")


def groups(file, what, words):
    """The TEST rows by the words that they share: the words, and a reader of their numbers."""
    table = read_table(DATA / file)
    table = table.take(sides(table, what) == TEST)
    numbers = cache(table.numbers)
    found = {}
    for row, key in enumerate(zip(*(table.columns[c] for c in words), strict=True)):
        found.setdefault(key, []).append(row)
    for key, rows in found.items():
        yield dict(zip(words, key, strict=True)), lambda column, rows=rows: numbers(column)[rows]


@needs_data
def test_collectives_inside_a_node_are_within_twelve_percent():
    errors = {}
    words = ("device", "collective", "library", "devices_per_node", "format")
    for word, rows in groups("collectives.csv.gz", "collective", words):
        n, measured = rows("num_devices").astype(np.int64), rows("time_s")
        device = get_device(word["device"] or "h100-sxm")
        inside = n <= int(word["devices_per_node"])
        if not inside.any() or device.name != word["device"] or "40" in word["device"] or "pcie" in word["device"]:
            continue
        requested = Collective(
            kind=word["collective"],
            num_devices=n,
            message_bytes=rows("message_bytes"),
            devices_per_node=int(word["devices_per_node"]),
            library=word["library"],
        )
        error = np.abs(predict(requested, device).time_s / measured - 1.0)[inside]
        errors.setdefault(word["library"], []).append(error)
    medians = {library: float(np.median(np.concatenate(e))) for library, e in errors.items()}
    assert medians["nccl"] < 0.065, medians
    assert all(m < 0.12 for m in medians.values()), medians
    assert np.median(np.concatenate([e for many in errors.values() for e in many])) < 0.08


@needs_data
def test_expert_exchanges_inside_a_node_are_within_twelve_percent():
    errors = []
    words = (
        "device",
        "collective",
        "library",
        "num_devices",
        "devices_per_node",
        "hidden_size",
        "num_experts",
        "experts_per_token",
        "num_sms",
        "format",
    )
    for word, rows in groups("moe_dispatch_combine.csv.gz", "moe_dispatch", words):
        if not word["library"].startswith("deepep") or int(word["num_devices"]) > int(word["devices_per_node"]):
            continue
        requested = TokenExchange(
            kind=word["collective"],
            tokens=rows("tokens"),
            library=word["library"],
            format=word["format"],
            num_sms=int(float(word["num_sms"] or 0)),
            **{c: int(word[c]) for c in ("num_devices", "devices_per_node", *words[5:8])},
        )
        errors.append(np.abs(predict(requested, get_device(word["device"])).time_s / rows("time_s") - 1.0))
    assert np.median(np.concatenate(errors)) < 0.08

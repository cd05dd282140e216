"""Collective rows to predictions: rows that share device, collective, library and format become one object."""

from collections.abc import Mapping
from functools import cache

import numpy as np

from orrery import network
from orrery.base.errors import OrreryError, UnknownName
from orrery.catalog.devices import get_device
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.kernel_rows import Numbers
from orrery.evidence.tables import Table
from orrery.network import Collective


def answer(table: Table, rows: Rows, answers: Answers) -> None:
    """Predict ``time_s`` of the given rows of collectives."""
    words = {c: table.words(c) for c in ("device", "collective", "library", "format", "devices_per_node")}
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in rows.tolist():
        groups.setdefault(tuple(str(words[c][row]) for c in words), []).append(row)
    numbers = cache(table.numbers)
    for key, members in groups.items():
        word = dict(zip(words, key, strict=True))
        if not word["device"]:
            answers.decline(members, "device is blank")
            continue
        try:
            _group(numbers, np.array(members), answers, word)
        except UnknownName as error:
            answers.decline(members, f"unknown {error.kind} {error.name}")
        except OrreryError as error:
            answers.decline(members, str(error))


def _group(numbers: Numbers, rows: Rows, answers: Answers, word: Mapping[str, str]) -> None:
    device = get_device(word["device"])
    devices, size = numbers("num_devices")[rows], numbers("message_bytes")[rows]
    for column, values in (("num_devices", devices), ("message_bytes", size)):
        answers.decline(rows[np.isnan(values)], f"{column} is blank")
        answers.decline(rows[values < 0], f"{column} is negative")
    keep = (devices >= 0) & (size >= 0)
    if not keep.any():
        return
    rows = rows[keep]
    per_node = numbers("devices_per_node")[rows[0]]
    collective = Collective(
        kind=word["collective"], num_devices=devices[keep].astype(np.int64), message_bytes=size[keep],
        devices_per_node=0 if np.isnan(per_node) else int(per_node), library=word["library"],
        format=word["format"] or "bf16",
    )  # fmt: skip
    timing = network.predict(collective, device)
    answers.predict("time_s", rows, np.asarray(timing.time_s), network.spread(collective, device))
    answers.bound_s[rows] = timing.wire_s

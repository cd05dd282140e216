"""Collective rows to predictions: rows that share everything but their sizes become one object of arrays.

Plain buffers (all-reduce and its kin) and expert-parallel exchanges (dispatch, combine) are asked differently.
"""

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery import network
from orrery.base.errors import OrreryError, UnknownName
from orrery.catalog.devices import get_device
from orrery.evidence.answers import Answers, Rows
from orrery.evidence.kernel_rows import Numbers
from orrery.evidence.tables import Table
from orrery.network import Collective, TokenExchange
from orrery.network.exchange import EXCHANGE_KINDS
from orrery.network.resolve import library_key

BUFFER_WORDS = ("device", "collective", "library", "format", "devices_per_node")
EXCHANGE_WORDS = (*BUFFER_WORDS, "num_devices", "hidden_size", "num_experts", "experts_per_token", "num_sms")
BUFFER_SIZES = ("num_devices", "message_bytes")
EXCHANGE_SIZES = ("num_devices", "tokens", "hidden_size", "num_experts", "experts_per_token")


def answer(table: Table, rows: Rows, answers: Answers) -> None:
    """Predict ``time_s`` of the given rows of collectives."""
    is_exchange = np.isin(table.words("collective"), EXCHANGE_KINDS)
    numbers = cache(table.numbers)
    for chosen, words, sizes in (
        (rows[~is_exchange[rows]], BUFFER_WORDS, BUFFER_SIZES),
        (rows[is_exchange[rows]], EXCHANGE_WORDS, EXCHANGE_SIZES),
    ):
        for key, members in _groups(table, chosen, words):
            retained = _whole(numbers, members, answers, sizes)
            if retained.size:
                _answer_group(numbers, retained, answers, key)


def _groups(table: Table, rows: Rows, words: tuple[str, ...]) -> list[tuple[dict[str, str], Rows]]:
    """Rows by the words that they share."""
    columns = {c: table.words(c) for c in words}
    found: dict[tuple[str, ...], list[int]] = {}
    for row in map(int, rows):
        found.setdefault(tuple(str(c[row]) for c in columns.values()), []).append(row)
    return [(dict(zip(words, key, strict=True)), np.array(members)) for key, members in found.items()]


def _whole(numbers: Numbers, rows: Rows, answers: Answers, sizes: tuple[str, ...]) -> Rows:
    """The rows that state all their sizes; the others are declined."""
    keep = np.ones(len(rows), dtype=np.bool_)
    for column in sizes:
        values = numbers(column)[rows]
        answers.decline(rows[np.isnan(values)], f"{column} is blank")
        answers.decline(rows[values < 0], f"{column} is negative")
        keep &= values >= 0
    return rows[keep]


def _answer_group(numbers: Numbers, rows: Rows, answers: Answers, word: Mapping[str, str]) -> None:
    if not word["device"]:
        return answers.decline(rows, "device is blank")
    try:
        device = get_device(word["device"])
        work = _exchange(numbers, rows, word) if "hidden_size" in word else _buffer(numbers, rows, word)
        timing = network.predict(work, device)
        answers.predict("time_s", rows, _array(timing.time_s), network.spread(work, device))
    except UnknownName as unknown:
        return answers.decline(rows, f"unknown {unknown.kind} {unknown.name}")
    except OrreryError as refused:
        return answers.decline(rows, str(refused))
    answers.bound_s[rows] = answers.memory_s[rows] = _array(timing.wire_s)
    answers.compute_s[rows] = 0.0
    return None


def _array(values: object) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def _count(numbers: Numbers, rows: Rows, column: str) -> int:
    """The number that all these rows share; 0 where it is blank."""
    value = numbers(column)[rows[0]]
    return 0 if np.isnan(value) else int(value)


def _buffer(numbers: Numbers, rows: Rows, word: Mapping[str, str]) -> Collective:
    return Collective(
        kind=word["collective"],
        num_devices=numbers("num_devices")[rows].astype(np.int64),
        message_bytes=numbers("message_bytes")[rows],
        devices_per_node=_count(numbers, rows, "devices_per_node"),
        library=library_key(word["library"]),
        format=word["format"] or "bf16",
    )


def _exchange(numbers: Numbers, rows: Rows, word: Mapping[str, str]) -> TokenExchange:
    return TokenExchange(
        kind=word["collective"],
        num_devices=_count(numbers, rows, "num_devices"),
        tokens=numbers("tokens")[rows],
        hidden_size=_count(numbers, rows, "hidden_size"),
        num_experts=_count(numbers, rows, "num_experts"),
        experts_per_token=_count(numbers, rows, "experts_per_token"),
        format=word["format"] or "fp8",
        devices_per_node=_count(numbers, rows, "devices_per_node"),
        library=library_key(word["library"]),
        num_sms=_count(numbers, rows, "num_sms"),
    )

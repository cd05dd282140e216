"""The cheapest mix of device types for requests of many sizes: buckets of sizes, what a type serves of each, a program.

A replica that serves r requests of bucket b a second, of at most c[b, g] while tokens come in time, is loaded by
r / c[b, g]; loads of one replica add up to at most 1:

    min  sum price[g] y[g]     sum_g x[b, g] = 1     sum_b rate[b] / c[b, g] x[b, g] <= y[g]     x >= 0, y whole

Several services have a block of these each, and share the devices that there are: sum_g devices[g, d] y[g] <= stock[d].
Mélange (arXiv 2404.14527) poses it like this, with measured throughputs for c, and with x in whole eighths or so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.program import Program, solved
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.serving.online import open_loop
from orrery.serving.steady import batch_limit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GAP_FRAC = 1e-3
"""Allowed gap of the rent to the proven optimum."""

LADDER = 12
"""Concurrencies, from one request to a full batch, at which a replica is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Requests of about one size, and their part of all."""

    input_tokens: float
    output_tokens: float
    share_frac: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReplicaRates:
    """One replica at rising concurrency: what it serves, and how far apart tokens come. Empty where it cannot run."""

    requests_per_s: Floats
    tpot_s: Floats

    def highest_per_s(self, slo_tpot_s: float) -> float:
        """The highest rate with tokens in time; 0 where even a lone request is too slow."""
        good = self.tpot_s <= slo_tpot_s
        return float(self.requests_per_s[good].max()) if good.any() else 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mix:
    """How many replicas of each type, and which share of each bucket goes to it (buckets x types)."""

    num_replicas: Ints
    dealt_frac: Floats
    usd_per_s: float


def cells_of(input_tokens: Ints, output_tokens: Ints, edges: Sequence[float]) -> Ints:
    """The cell of a grid of sizes that each request falls into."""
    rows, columns = (np.searchsorted(np.asarray(edges), tokens) for tokens in (input_tokens, output_tokens))
    return np.asarray(rows * (len(edges) + 1) + columns, dtype=np.int64)


def buckets(input_tokens: Ints, output_tokens: Ints, edges: Sequence[float]) -> tuple[Bucket, ...]:
    """Sizes of requests sorted into cells of a grid; each cell, in order, stands for its requests by their means."""
    cells = cells_of(input_tokens, output_tokens, edges)
    return tuple(
        Bucket(
            input_tokens=float(input_tokens[cells == cell].mean()),
            output_tokens=float(output_tokens[cells == cell].mean()),
            share_frac=float((cells == cell).mean()),
        )
        for cell in np.unique(cells)
    )


def pace(deployment: Deployment, input_tokens: float, output_tokens: float) -> ReplicaRates:
    """A replica under steady arrivals of one size; empty where the model or a single request does not fit."""
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible) or memory.sequences(input_tokens + output_tokens) < 1.0:
        return ReplicaRates(requests_per_s=np.empty(0), tpot_s=np.empty(0))
    limit = batch_limit(deployment, memory, input_tokens, output_tokens)
    points = open_loop(deployment, memory, input_tokens, output_tokens, np.geomspace(1.0, max(limit, 1.0), LADDER))
    rate, gap = (np.asarray(values, dtype=np.float64) for values in (points.requests_per_s, points.tpot_s))
    return ReplicaRates(requests_per_s=rate, tpot_s=gap)


def alone(loads: Floats, usd_per_s: Floats) -> Floats:
    """Dollars a second of each type with no other beside it; infinite where it cannot serve some bucket.

    ``loads`` (buckets x types) is how many replicas each bucket's whole rate keeps busy.
    """
    return np.ceil(loads.sum(axis=0) - 1e-9) * usd_per_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """One service in the program: ``loads_ratio`` (buckets x types), the rent of a replica of each type, and the
    devices that it takes of each kind that is limited (types x kinds)."""

    loads_ratio: Floats
    usd_per_s: Floats
    num_devices: Ints


def cheapest(loads: Floats, usd_per_s: Floats) -> Mix | None:
    """The least rent for all buckets; None where no type serves one of them."""
    block = Block(loads_ratio=loads, usd_per_s=usd_per_s, num_devices=np.zeros((loads.shape[1], 0), dtype=np.int64))
    found = cheapest_together((block,), np.zeros(0))
    return found[0] if found else None


def cheapest_together(blocks: Sequence[Block], stock_devices: Floats) -> tuple[Mix, ...] | None:
    """The least rent for services that share what is in stock of each kind of device; None where there is none."""
    parts = [_rows(block) for block in blocks]
    widths = [block.loads_ratio.size + block.usd_per_s.size for block in blocks]
    starts = np.concatenate(([0], np.cumsum(widths)))
    highest = max(float(block.usd_per_s.max()) for block in blocks)
    matrix: list[Floats] = []
    for k, (rows, _, _) in enumerate(parts):
        wide = np.zeros((rows.shape[0], int(starts[-1])))
        wide[:, starts[k] : starts[k + 1]] = rows
        matrix.append(wide)
    held = [np.vstack([np.zeros((b.loads_ratio.size, stock_devices.size)), b.num_devices]).T for b in blocks]
    found = solved(
        Program(
            cost=np.concatenate(
                [np.concatenate([np.zeros(b.loads_ratio.size), b.usd_per_s / highest]) for b in blocks]
            ),
            matrix=np.vstack([*matrix, np.hstack(held)]).astype(np.float64),
            row_low=np.concatenate([*(low for _, low, _ in parts), np.full(stock_devices.size, -np.inf)]),
            row_high=np.concatenate([*(high for _, _, high in parts), stock_devices]),
            most=np.concatenate(
                [
                    np.concatenate([np.isfinite(b.loads_ratio).reshape(-1) * 1.0, np.full(b.usd_per_s.size, np.inf)])
                    for b in blocks
                ]
            ),
            is_whole=np.concatenate([np.arange(w) >= b.loads_ratio.size for w, b in zip(widths, blocks, strict=True)]),
        ),
        gap_frac=GAP_FRAC,
    )
    if found is None:
        return None
    return tuple(_mix(block, found.x[starts[k] : starts[k + 1]]) for k, block in enumerate(blocks))


def _rows(block: Block) -> tuple[Floats, Floats, Floats]:
    """Rows of one service: every bucket is dealt out whole, and no type is loaded beyond its replicas."""
    num_buckets, num_types = block.loads_ratio.shape
    can = np.isfinite(block.loads_ratio)
    serve = np.hstack([np.kron(np.eye(num_buckets), np.ones(num_types)), np.zeros((num_buckets, num_types))])
    fit = np.hstack([np.vstack([np.diag(row) for row in np.where(can, block.loads_ratio, 0.0)]).T, -np.eye(num_types)])
    low = np.concatenate([np.ones(num_buckets), np.full(num_types, -np.inf)])
    high = np.concatenate([np.ones(num_buckets), np.zeros(num_types)])
    return np.vstack([serve, fit]).astype(np.float64), low, high


def _mix(block: Block, x: Floats) -> Mix:
    replicas = np.rint(x[block.loads_ratio.size :]).astype(np.int64)
    return Mix(
        num_replicas=replicas,
        dealt_frac=x[: block.loads_ratio.size].reshape(block.loads_ratio.shape),
        usd_per_s=float(replicas @ block.usd_per_s),
    )

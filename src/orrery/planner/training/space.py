"""Every layout worth asking about, as columns, family by family.

A family fixes what cuts the model and the devices: tp, cp, pp, ep, etp. Inside it everything else varies: chunks,
schedule, micro-batch, sharding, recomputation. Sizes are divisors, so every layout of the space uses all devices and
the whole batch. Layers need not come out even over stages and chunks: what is missing goes short at both ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.modules import mask_of
from orrery.training.allowed import head_counts, num_experts
from orrery.training.columns import RECOMPUTES, SHARDINGS, Columns
from orrery.training.sync import fast_domain

Ints = NDArray[np.int64]

MIN_TENSOR = 8
"""Tensor parallelism is tried as far as the fast links reach, or so far where they join fewer devices."""

MIN_CONTEXT_TOKENS = 2048
"""A context-parallel rank holds at least so many tokens: with fewer its kernels are too small to be worth cutting."""

MAX_MICRO_BATCH = 64
MAX_CHUNKS = 16
MAX_UNEVEN = 1.15
"""The fullest stage holds no more than so many times the mean stage's layers: others idle for what it has more."""

EVERY_RECOMPUTED_LAYERS = 32
"""Partial full recomputation is tried for so many evenly spaced numbers of layers of a stage."""

CHUNKED = ("interleaved", "zero-bubble-v")


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSettings:
    """Settings that the user fixed; None varies."""

    tp: int | None = None
    cp: int | None = None
    pp: int | None = None
    dp: int | None = None
    vp: int | None = None
    first_stage_layers: int | None = None  # varies never: even stages where nothing is fixed
    last_stage_layers: int | None = None
    ep: int | None = None
    etp: int | None = None
    micro_batch: int | None = None
    sharding: str | None = None
    sharding_group: int | None = None
    recompute: str | None = None
    recompute_layers: int | None = None
    recompute_modules: tuple[str, ...] = ()
    schedule: str | None = None
    schedules: tuple[str, ...] = ()  # what may be tried where none is fixed; empty = every one
    context_kind: str | None = None
    is_sequence_parallel: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Layouts that cut the model alike."""

    tp: int
    cp: int
    pp: int
    dp: int
    ep: int
    etp: int

    def __str__(self) -> str:
        words = [f"{k}{v}" for k in ("tp", "cp", "pp", "ep", "etp", "dp") if (v := getattr(self, k)) > 1]
        return " ".join(words) or "one device"


def divisors(n: int, most: int = 1 << 30) -> list[int]:
    """Divisors of ``n`` in rising order, up to ``most``."""
    small = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return [d for d in sorted({*small, *(n // d for d in small)}) if d <= most]


def families(job: TrainingJob, fixed: FixedSettings) -> Iterator[Family]:
    """Every way to cut the model and the devices."""
    devices, model = job.cluster.num_devices, job.model
    layers = sum(b.count for b in (*model.encoder, *model.blocks))
    widest = min(max(fast_domain(job), MIN_TENSOR), devices)
    heads = head_counts(job)
    tensor = [t for t in divisors(devices, widest) if all(h % t == 0 for h in heads)]
    most = job.seq_len // MIN_CONTEXT_TOKENS
    context = [c for c in divisors(devices) if c == 1 or (job.seq_len % (2 * c) == 0 and c <= most)]
    stages = [p for p in divisors(devices) if p <= layers and -(-layers // p) * p <= MAX_UNEVEN * layers]
    experts = divisors(num_experts(job)) if num_experts(job) else [1]
    for tp, cp, pp in product(_one(fixed.tp, tensor), _one(fixed.cp, context), _one(fixed.pp, stages)):
        if devices % (tp * cp * pp):
            continue
        dp = devices // (tp * cp * pp)
        if fixed.dp not in (None, dp) or job.global_batch % dp:
            continue
        ranks = tp * cp * dp
        for ep in _one(fixed.ep, experts):
            widths = sorted({1, tp}) if num_experts(job) else [1]  # as frameworks cut experts: not, or as all else
            for etp in _one(fixed.etp, widths):
                if ranks % (ep * etp) == 0:
                    yield Family(tp=tp, cp=cp, pp=pp, dp=dp, ep=ep, etp=etp)


def _one(fixed: int | None, free: list[int]) -> list[int]:
    return free if fixed is None else [fixed]


def _micro_batches(job: TrainingJob, fixed: FixedSettings, family: Family) -> list[int]:
    return _one(fixed.micro_batch, divisors(job.global_batch // family.dp, MAX_MICRO_BATCH))


def _sequences(fixed: FixedSettings, family: Family) -> list[bool]:
    """Sequence parallelism: less memory for the same bytes on the links, so whoever cuts tensors takes it."""
    return [family.tp > 1 and fixed.is_sequence_parallel is not False]


def _rings(fixed: FixedSettings, family: Family) -> list[str]:
    return [fixed.context_kind] if fixed.context_kind else ["ring", "all-to-all"] if family.cp > 1 else ["ring"]


def choice_keys(job: TrainingJob, fixed: FixedSettings, family: Family) -> list[tuple[int, ...]]:
    """Settings of ``layouts`` that decide a layer's cost, as rows of ``columns.choice_rows``."""
    axes = (_micro_batches(job, fixed, family), _sequences(fixed, family), _rings(fixed, family))
    return [
        (family.tp, family.cp, family.ep, family.etp, micro, int(is_cut), int(kind == "ring"))
        for micro, is_cut, kind in product(*axes)
    ]


def layouts(job: TrainingJob, fixed: FixedSettings, family: Family, schedules: tuple[str, ...]) -> Columns:
    """Enumerate the layouts of one family, over all settings that vary inside it."""
    layers = -(-sum(b.count for b in (*job.model.encoder, *job.model.blocks)) // family.pp)  # of the fullest stage
    pipes = list(_pipes(fixed, family, layers, schedules))
    micro = _micro_batches(job, fixed, family)
    recomputes = list(_recomputes(fixed, layers))
    shards = list(_shards(fixed, family, job.cluster.devices_per_node))
    sequence, rings = _sequences(fixed, family), _rings(fixed, family)
    axes = [pipes, micro, recomputes, shards, sequence, rings]
    index = np.indices([len(a) for a in axes]).reshape(len(axes), -1)
    count = index.shape[1]

    def pick(axis: int, table: list[int]) -> Ints:
        return np.array(table, dtype=np.int64)[index[axis]]

    same = {n: np.full(count, getattr(family, n), dtype=np.int64) for n in ("tp", "cp", "pp", "dp", "ep", "etp")}
    ends = {n: np.full(count, getattr(fixed, n) or 0) for n in ("first_stage_layers", "last_stage_layers")}
    return Columns(
        **same,
        **ends,
        vp=pick(0, [v for v, _ in pipes]),
        schedule=pick(0, [s for _, s in pipes]),
        micro_batch=pick(1, micro),
        recompute=pick(2, [r for r, _ in recomputes]),
        recompute_layers=pick(2, [n for _, n in recomputes]),
        recompute_modules=np.full(count, mask_of(fixed.recompute_modules), dtype=np.int64),
        sharding=pick(3, [s for s, _, _ in shards]),
        sharding_group=pick(3, [g for _, g, _ in shards]),
        secondary_group=pick(3, [g for _, _, g in shards]),
        is_sequence_parallel=np.array(sequence)[index[4]],
        is_ring=np.array([r == "ring" for r in rings])[index[5]],
        schedules=schedules,
    )


def _pipes(fixed: FixedSettings, family: Family, layers: int, schedules: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """(vp, schedule) pairs of a family."""
    if family.pp == 1:
        yield 1, 0
        return
    for number, name in enumerate(schedules):
        if fixed.schedule in (None, name):
            chunks = sorted({-(-layers // each) for each in range(1, layers)}) if name in CHUNKED else [1]
            chunks = [v for v in chunks if v <= MAX_CHUNKS]
            for vp in _one(fixed.vp, chunks):
                yield vp, number


def _recomputes(fixed: FixedSettings, layers: int) -> Iterator[tuple[int, int]]:
    """(kind, layers) pairs: nothing, the framework's pick, whole layers of all or of part of a stage."""
    for number, name in enumerate(RECOMPUTES):
        if fixed.recompute in (None, name):
            yield number, 0
            if name == "full" and fixed.recompute_layers != 0:
                step = max(1, layers // EVERY_RECOMPUTED_LAYERS)
                for count in _one(fixed.recompute_layers, list(range(step, layers, step))):
                    yield number, count


def _shards(fixed: FixedSettings, family: Family, per_node: int) -> Iterator[tuple[int, int, int]]:
    """(kind, group, nearer copy): over all data ranks, or within the node with copies between nodes (HSDP)."""
    ranks = family.dp * family.cp
    near = max(1, per_node // family.tp)
    for number, name in enumerate(SHARDINGS):
        if fixed.sharding not in (None, name) or (number and ranks == 1) or (name == "zero2" and family.pp > 1):
            continue
        groups = [ranks] + ([near] if number and 1 < near < ranks and ranks % near == 0 else [])
        for group in _one(fixed.sharding_group, groups):
            yield number, group, 0
            if name == "zero3" and family.pp == 1 and group == ranks and 1 < near < ranks and ranks % near == 0:
                yield number, group, near

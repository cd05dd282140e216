"""Sequences of very different lengths: one mesh for the longest, or ranks for each by its length."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed, refuse_beside, refuse_without
from orrery.scenario.train_with.number_file import numbers_of
from orrery.training.columns import columns_of
from orrery.training.sequences.lengths import Floats, Ints, LongTail
from orrery.training.sequences.step import StepTime, hybrid_step, static_step
from orrery.training.sequences.trainer import (
    ATTENTION_BACKWARD_RATIO,
    PRODUCTS_BACKWARD_RATIO,
    STATE_BYTES,
    Trainer,
)
from orrery.training.step import step_of

IDLE = "waiting for other ranks"
"""The part in which a rank has done its sequences and others have not."""

HOST_BYTES = 200e9
"""Host memory of each device for activations; assumed where nobody says."""

WRITE = "one length in tokens a line, or lognormal:MEDIAN:SPREAD such as lognormal:1500:2"


def with_sequences(scenario: Scenario, plain: Changed) -> Changed:
    """The step over one batch of such sequences, and what each part of balancing brings."""
    refuse_without(scenario, "seq_lengths", ("sequence_balancing",))
    if scenario.seq_lengths is None:
        return plain
    others = ("partition", "local_updates", "sites", "worker_times", "recovery", "gradient_overlap")
    others = (*others, "expert_overlap", "expert_capacity_factor")
    refuse_beside(scenario, "seq_lengths", others, "its step has parts of its own")
    layout, job = plain.layout, plain.job
    if layout.pp > 1 or layout.ep > 1:
        raise ScenarioError(f"seq_lengths: {layout}; write pp = 1 and ep = 1: ranks of tp devices share the sequences.")
    lengths, notes = lengths_of(scenario, job.seq_len, job.tokens_per_step), list[str]()
    host = scenario.host_memory_bytes
    if host is None:
        notes.append(f"host_memory_bytes: {HOST_BYTES:g} for each device (assumed)")
    trainer = Trainer(
        model=job.model,
        device=job.cluster.device,
        num_devices=job.cluster.num_devices,
        tp=layout.tp,
        devices_per_node=job.cluster.devices_per_node,
        host_bytes=HOST_BYTES if host is None else host / job.cluster.devices_per_node,
    )
    static = static_step(trainer, lengths, job.seq_len)
    if scenario.sequence_balancing:
        found, table = _balanced(trainer, lengths, static)
        tables = (table,)
    else:
        found, tables = static, (_one(static),)
    changed = _priced(plain, trainer, lengths, found)
    return changed.saying(*tables, notes=tuple(notes))


def lengths_of(scenario: Scenario, most_tokens: int, num_tokens: int) -> Ints:
    """One batch: the file's lengths in order, again from its start where the batch is larger; the last one is cut."""
    word = str(scenario.seq_lengths)
    if word.casefold().startswith("lognormal:"):
        return _drawn(word, most_tokens).batch(num_tokens, scenario.seed or 0)
    given = numbers_of(word, "seq_lengths", WRITE).ravel()
    if given.max() > most_tokens or (given != np.rint(given)).any():
        raise ScenarioError(
            f"seq_lengths: the longest has {given.max():g} tokens, seq_len is {most_tokens}; write whole lengths, and "
            "seq_len for the longest."
        )
    repeats = math.ceil(num_tokens / given.sum())
    lengths = np.tile(given.astype(np.int64), repeats)
    lengths = lengths[: int(np.searchsorted(np.cumsum(lengths), num_tokens)) + 1]
    lengths[-1] -= int(lengths.sum()) - num_tokens
    return lengths


def _drawn(word: str, most_tokens: int) -> LongTail:
    try:
        _, median, spread = word.split(":")
        return LongTail(median_tokens=float(median), spread_ratio=float(spread), most_tokens=most_tokens)
    except ValueError:
        raise ScenarioError(f"seq_lengths: got {word!r}; write {WRITE}.") from None


def _priced(plain: Changed, trainer: Trainer, lengths: Ints, found: StepTime) -> Changed:
    """Parts under the names that a step has; memory and operations of these sequences."""
    ahead = found.products_s / (1.0 + PRODUCTS_BACKWARD_RATIO) + found.attention_s / (1.0 + ATTENTION_BACKWARD_RATIO)
    parts = dict.fromkeys(plain.parts, 0.0)
    parts |= {
        "forward": ahead,
        "backward": found.products_s + found.attention_s - ahead,
        "context parallel": found.ring_s,
        "gradient reduction": found.sync_s,
        IDLE: found.idle_s,
    }
    changed = plain.with_parts(parts)
    model = _model_flops(plain, lengths)
    each = model / plain.job.cluster.num_devices
    steps = replace(changed.steps, model_flops=np.array([model]), hardware_flops=np.array([each]))
    state = STATE_BYTES * trainer.model.num_parameters / trainer.num_devices
    held = dict.fromkeys(plain.ranks[0].parts, 0.0)
    held |= {
        "weights": state / 8.0,
        "gradients": state / 8.0,
        "optimizer": state * 0.75,
        "activations": min(trainer.kept_bytes, float(lengths.max()) * trainer.token_bytes),
    }
    return replace(changed, steps=steps, ranks=(replace(plain.ranks[0], parts=held),))


def _model_flops(plain: Changed, lengths: Ints) -> float:
    """Operations of the batch: products grow with the tokens, attention with the squares of the lengths.

    Both are told apart by the same tokens in sequences of half the length.
    """
    job = plain.job
    if job.seq_len < 2:
        return float(plain.steps.model_flops[0])
    half = replace(job, seq_len=job.seq_len // 2, global_batch=2 * job.global_batch)
    whole, shorter = (
        float(plain.steps.model_flops[0]),
        float(step_of(half, columns_of([plain.layout])).model_flops[0]),
    )
    slope = (whole - shorter * job.tokens_per_step / half.tokens_per_step) / (job.seq_len - half.seq_len)
    squares: Floats = lengths.astype(np.float64) ** 2
    return whole + slope * (float(squares.sum()) / job.tokens_per_step - job.seq_len)


def _balanced(trainer: Trainer, lengths: Ints, static: StepTime) -> tuple[StepTime, Table]:
    """Degrees alone, then equal work, then offload, of which the fastest is taken; each beside the static mesh."""
    steps = (
        ("ranks by length", hybrid_step(trainer, lengths, offloads=False, balances=False)),
        ("… and equal work", hybrid_step(trainer, lengths, offloads=False)),
        ("… and activations on the host", hybrid_step(trainer, lengths)),
    )
    rows = [
        _row(name, step) | {"speedup_ratio": static.time_s / step.time_s}
        for name, step in (("one mesh for the longest", static), *steps)
    ]
    table = Table(kind="sequences", title="Sequences by their lengths", rows=tuple(rows))
    return min((step for _, step in reversed(steps)), key=lambda step: step.time_s), table


def _one(static: StepTime) -> Table:
    row = _row("one mesh for the longest", static)
    return Table(kind="sequences", title="Sequences of these lengths", rows=(row,))


def _row(name: str, step: StepTime) -> dict[str, Any]:
    return {
        "sequences": name,
        "step_s": step.time_s,
        "attention_s": step.attention_s,
        "ring_s": step.ring_s,
        "idle_s": step.idle_s,
        "largest_group": step.most_degree,
        "pieces": step.num_pieces,
    }

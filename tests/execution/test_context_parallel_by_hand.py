"""Context parallelism worked by hand: bytes on the ring, pairs of tokens in its steps, and the sums between them."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.execution.train import attention, exchanges
from orrery.execution.train.attention import attention_times, context_streams
from orrery.execution.train.cut import choice_of
from orrery.execution.train.exchanges import layer_exchanges
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster

SEQ, HEADS, KV_HEADS, HEAD = 8192, 32, 8, 128
"""Llama 3 8B."""


def job_of():
    device = get_device("h100-sxm")
    return TrainingJob(
        model=get_model("llama-3.1-8b"),
        cluster=Cluster(device=device, num_devices=8, devices_per_node=8),
        framework=get_framework("megatron-lm", device, "bf16"),
        recipe=get_recipe("bf16"),
        seq_len=SEQ,
        global_batch=8,
    )


def ring(cp, tp=1, kind="ring"):
    return choice_of([TrainingLayout(cp=cp, tp=tp, dp=8 // (cp * tp), context_kind=kind)])


@pytest.fixture
def bytes_are_seconds(monkeypatch):
    def of(job, kind, ranks, stride, message_bytes):
        return np.where(
            np.asarray(ranks) > 1, {"send_recv": 1.0, "all_to_all": 1e-3}.get(kind, 0.0) * message_bytes, 0.0
        )

    monkeypatch.setattr(exchanges, "collective_s", of)


@pytest.mark.parametrize(("cp", "tp"), [(2, 1), (4, 1), (4, 2), (8, 1)])
def test_keys_and_values_go_round_once_and_with_their_gradients_on_the_way_back(bytes_are_seconds, cp, tp):
    """Each of cp - 1 hops carries K and V of s/cp tokens, 8/tp heads of 128, 2 bytes; back, dK and dV beside them."""
    job = job_of()
    found = layer_exchanges(job, job.model.blocks[0], ring(cp, tp))
    hop = 2 * (SEQ // cp) * (KV_HEADS // tp) * 2 * HEAD
    assert found.context_forward_s[0] == (cp - 1) * hop
    assert found.context_backward_s[0] == 2 * (cp - 1) * hop


def test_heads_are_dealt_out_with_queries_keys_values_and_outputs(bytes_are_seconds):
    job = job_of()
    found = layer_exchanges(job, job.model.blocks[0], ring(4, 1, "all-to-all"))
    message = 2 * (SEQ // 4) * HEAD * (2 * HEADS + 2 * KV_HEADS)
    assert found.context_forward_s[0] == found.context_backward_s[0] == pytest.approx(1e-3 * message)


def pairs_of(op):
    """Pairs of tokens that a kernel multiplies, its diagonal as a half."""
    whole = np.asarray(op.query_tokens * op.context_tokens, dtype=float)
    return whole / 2 if op.is_causal else whole


@pytest.mark.parametrize("cp", [1, 2, 4, 8])
def test_a_rings_steps_have_a_cp_th_of_the_pairs(monkeypatch, cp):
    """(s/cp)^2/2 on its own tokens and as many in each of cp - 1 steps: s^2/(2 cp) in all, the same on every rank."""
    job = job_of()
    monkeypatch.setattr(attention, "_predict", lambda _, op: pairs_of(op))
    forward, backward = attention_times(job, job.model.blocks[0].mixer, ring(cp))
    assert forward[0] == SEQ**2 / 2 / cp
    assert backward[0] == 2.5 * forward[0]


def test_a_ring_never_beats_a_cp_th_of_the_whole():
    """Smaller kernels are no more efficient, and each is launched."""
    job = job_of()
    mixer = job.model.blocks[0].mixer
    whole = attention_times(job, mixer, ring(1))[0][0]
    shares = [cp * attention_times(job, mixer, ring(cp))[0][0] / whole for cp in (2, 4, 8)]
    assert all(s > 0.99 for s in shares)
    assert shares == sorted(shares)


def test_windows_are_a_share_of_the_whole():
    job, mixer = job_of(), replace(job_of().model.blocks[0].mixer, window_tokens=1024)
    whole, quarter = (attention_times(job, mixer, ring(cp))[0][0] for cp in (1, 4))
    assert quarter == pytest.approx(whole / 4)


def test_outputs_are_merged_and_gradients_summed_step_by_step(monkeypatch):
    """cp = 4: the first output and 3/4 of three more are merged; back, 3/4 of three steps' dQ, dK and dV are added."""
    job = job_of()
    monkeypatch.setattr(attention, "_predict", lambda _, op: np.asarray(op.tokens * op.width, dtype=float))
    forward, backward = context_streams(job, job.model.blocks[0].mixer, ring(4))
    tokens = SEQ // 4
    assert forward[0] == (1 + 0.75 * 3) * tokens * HEADS * HEAD
    assert backward[0] == 0.75 * 3 * tokens * (HEADS + 2 * KV_HEADS) * HEAD
    dealt, _ = context_streams(job, job.model.blocks[0].mixer, ring(4, 1, "all-to-all"))
    assert dealt[0] == pytest.approx(4 / 3 * tokens * (2 * HEADS + 2 * KV_HEADS) * HEAD)


def test_without_context_parallelism_there_is_nothing_to_merge():
    job = job_of()
    forward, backward = context_streams(job, job.model.blocks[0].mixer, ring(1))
    assert forward[0] == backward[0] == 0.0
    both = choice_of([TrainingLayout(), TrainingLayout(cp=2)])
    forward, _ = context_streams(job, job.model.blocks[0].mixer, both)
    assert forward[0] == 0.0
    assert forward[1] > 0.0

"""Hand-overs of weights, passes of training and whole steps by hand: few tensors, few seconds."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from rl_jobs import job

from orrery.execution.memory import Infeasible
from orrery.rl import passes, step, sync
from orrery.rl.job import Reward
from orrery.rl.lengths import Lengths
from orrery.rl.pace import OverlappedSteps

FULL = Infeasible(what="cache", need=2.0, have=1.0, unit="tokens", smallest_change="Use more.")


def linear(name):
    return SimpleNamespace(name=name)


DENSE = SimpleNamespace(count=2, linears=[linear(n) for n in ("qkv", "out", "gate_up", "down")], experts=None)
MIXED = SimpleNamespace(count=1, linears=[linear("router")], experts=SimpleNamespace(num_experts=4, is_gated=True))


def test_tensors_of_a_checkpoint():
    """A layer: q, k, v, out, gate, up, down and two norms; then embedding, last norm and a head of its own."""
    assert sync.num_tensors(SimpleNamespace(blocks=[DENSE], is_head_tied=True)) == 2 * 9 + 2
    assert sync.num_tensors(SimpleNamespace(blocks=[DENSE], is_head_tied=False)) == 21
    assert sync.num_tensors(SimpleNamespace(blocks=[MIXED], is_head_tied=False)) == 1 + 12 + 2 + 3
    plain = SimpleNamespace(num_experts=4, is_gated=False)
    plain = SimpleNamespace(count=3, linears=[], experts=plain)
    assert sync.num_tensors(SimpleNamespace(blocks=[plain], is_head_tied=True)) == 3 * (8 + 2) + 2


def sync_job(is_colocated=True, num_devices=8, blocks=(DENSE,), **layout):
    link = SimpleNamespace(each_way_bytes_per_s=10.0)
    device = SimpleNamespace(
        scaleup=SimpleNamespace(each_way_bytes_per_s=50.0),
        scaleout=SimpleNamespace(each_way_bytes_per_s=8.0),
        host=SimpleNamespace(each_way_bytes_per_s=4.0),
    )
    cluster = SimpleNamespace(device=device, link=lambda n: link, devices_per_node=8)
    return SimpleNamespace(
        training=SimpleNamespace(
            cluster=cluster,
            model=SimpleNamespace(num_parameters=100, blocks=list(blocks), is_head_tied=True),
            recipe=SimpleNamespace(weights_bytes=0.0),
            framework=SimpleNamespace(weights_bytes=4.0),
        ),
        framework=SimpleNamespace(
            colocated_tensor_s=0.1,
            separate_tensor_s=0.2,
            broadcast_ratio=0.5,
            sleep_s=1.5,
            offload_bytes_per_s=7.0,
            keeps_reference_on_host=True,
        ),
        layout=SimpleNamespace(**({"tp": 2, "pp": 2, "ep": 1, "etp": 1, "sharding": "", "num_devices": 8} | layout)),
        is_colocated=is_colocated,
        num_devices=num_devices,
        offloads=True,
        has_reference=True,
    )


def test_weights_to_the_engine_by_hand():
    """200 bytes on four ranks: three quarters come over 10 B/s, 15 s; 20 tensors of 0.1 s or 0.2 s."""
    assert sync.weight_sync_s(sync_job()) == pytest.approx(15 + 2)
    assert sync.weight_sync_s(sync_job(is_colocated=False)) == pytest.approx(15 + 4)
    # beyond a node, half of 8 B/s: 50 s hide the gathering
    assert sync.weight_sync_s(sync_job(is_colocated=False, num_devices=9)) == pytest.approx(50)
    assert sync.weight_sync_s(sync_job(tp=1, pp=1)) == pytest.approx(2)


@pytest.mark.parametrize(
    ("layout", "blocks", "holders"),
    [
        ({}, [DENSE], 4),
        ({"sharding": "zero3"}, [DENSE], 8),
        ({"ep": 4, "etp": 1}, [DENSE], 4),
        ({"ep": 4, "etp": 1}, [DENSE, MIXED], 8),
        ({"ep": 2, "etp": 1, "tp": 1}, [MIXED], 4),
        ({"ep": 2, "etp": 2, "tp": 1, "pp": 1}, [MIXED], 4),
        ({"ep": 8, "pp": 2}, [MIXED], 8),
    ],
)
def test_ranks_that_hold_a_whole_model(layout, blocks, holders):
    assert sync.holders(sync_job(blocks=blocks, **layout)) == holders


RANKS = tuple(
    SimpleNamespace(parts={"weights": w, "optimizer": 2 * w, "gradients": w, "fixed": 5.0}, peak_bytes=w)
    for w in (10.0, 14.0)
)


def test_state_and_reference_by_hand():
    """The fullest device holds 14 + 28 bytes; a reference in 16 of its 32 bits is 7."""
    given = sync_job()
    assert sync.offloaded_bytes(RANKS) == 42.0
    assert sync.offload_s(given, RANKS) == 3.0 + 12.0
    given.offloads = False
    assert sync.offload_s(given, RANKS) == 3.0
    given.is_colocated = False
    assert sync.offload_s(given, RANKS) == 0.0
    assert sync.reference_bytes(given, RANKS) == 7.0
    assert sync.swap_s(given, RANKS) == 3.5
    given.training.recipe.weights_bytes = 2.0
    assert sync.reference_bytes(given, RANKS) == 14.0
    given.has_reference = False
    assert sync.swap_s(given, RANKS) == 0.0
    given.has_reference, given.framework.keeps_reference_on_host = True, False
    assert sync.swap_s(given, RANKS) == 0.0


@dataclass(frozen=True)
class Layout:
    dp: int = 2
    micro_batch: int = 4


def passes_job(**given):
    training = SimpleNamespace(seq_len=100, model="policy")
    return job(training=training, layout=Layout(), num_prompts=4, group=2, **given)


@pytest.fixture
def costed(monkeypatch):
    """An update takes 10 s, of a critic 20 s, and a forward pass a tenth of it."""
    lengths = {"policy": 10.0, "critic": 20.0, "judge": 40.0}
    monkeypatch.setattr(passes, "update_job", lambda job, packing, model: model)

    def cost(model, layout):
        assert layout.micro_batch in (2, 4)  # as many as an update has
        took = np.array([lengths[model]])
        return SimpleNamespace(time_s=took, parts={"all": took}), RANKS

    monkeypatch.setattr(passes, "costed", cost)
    monkeypatch.setattr(passes, "forward_pass_s", lambda parts: parts["all"] / 10)
    monkeypatch.setattr(passes, "swap_s", lambda job, ranks: 0.5)


def phases(**given):
    lengths = Lengths(prompt=np.full(8, 50), response=np.full(8, 50))
    return passes.passes(passes_job(**given), (lengths, lengths)).phases


def test_passes_by_hand(costed):
    assert phases() == {
        "policy training": 10.0,
        "log-probabilities": 1.0,
        "reference log-probabilities": 1.5,
        "reward": 0.0,
    }
    more = phases(num_updates=2, num_epochs=3, has_reference=False, critic="critic")
    assert more == {
        "policy training": 60.0,
        "log-probabilities": 2.0,
        "reward": 0.0,
        "values": 4.0,
        "critic training": 120.0,
    }
    judged = Reward(sample_s=3.0, workers=4, model="judge")
    found = phases(reward=judged, kept_frac=0.5, num_updates=2, has_old_logprobs=False, has_reference=False)
    # 16 responses on four workers, two forward passes of 4 s over as many again
    assert found == {"policy training": 20.0, "reward": 12.0 + 16.0}


def test_micro_batches_have_the_room_of_the_layout(costed):
    lengths = Lengths(prompt=np.full(8, 50), response=np.full(8, 50))
    full = passes.packing_of(passes_job(), lengths)
    assert (full.seq_len, full.micro_batch, full.num_micro_batches) == (100, 4, 1)
    wide = passes.packing_of(passes_job(is_packed=False, num_updates=2), lengths)
    assert (wide.seq_len, wide.micro_batch, wide.num_micro_batches) == (100, 2, 1)


def step_job(**given):
    framework = SimpleNamespace(step_s=2.0, keeps_reference_on_host=False)
    engine_of = SimpleNamespace(engine=SimpleNamespace(context_bytes=3.0))
    training = SimpleNamespace(recipe=SimpleNamespace(weights_bytes=2.0), framework=None)
    return job(framework=framework, generation=engine_of, training=training, **given)


@pytest.fixture
def parts_of_a_step(monkeypatch):
    lengths = Lengths(prompt=np.array([1, 2]), response=np.array([3, 4]))
    done = SimpleNamespace(phases={"policy training": 10.0}, time_s=10.0, ranks=RANKS, critic_ranks=RANKS, steps=None)
    served = SimpleNamespace(time_s=30.0, rounds=(SimpleNamespace(lengths=lengths),) * 2, simulated=None)
    memory = SimpleNamespace(
        weights_bytes=1.0, kv_capacity_bytes=2.0, activation_bytes=3.0, communication_bytes=4.0, context_bytes=5.0
    )
    for name, value in {
        "rollouts": served,
        "passes": done,
        "memory_of": memory,
        "deployed": None,
        "weight_sync_s": 1.0,
        "offload_s": 4.0,
        "power_w": np.array([300.0]),
        "room_bytes": 80.0,
        "side_by_side": OverlappedSteps(period_s=17.0, latency_s=20.0, busy_frac=0.5),
    }.items():
        monkeypatch.setattr(step, name, lambda *_, value=value: value)


def test_a_step_in_turn_is_the_sum_of_its_phases(parts_of_a_step):
    found = step.rl_step(step_job())
    assert found.phases == {
        "generation": 30.0,
        "policy training": 10.0,
        "weight sync": 1.0,
        "offload": 4.0,
        "framework": 2.0,
    }
    assert list(found.phases) == ["generation", "policy training", "weight sync", "offload", "framework"]
    assert (found.time_s, found.trained_tokens, found.trainer_power_w) == (47.0, 10.0, 300.0)
    # the second rank: 14 + 28 + 14 + 5, a reference of as many bytes, a critic's 56, a sleeping engine
    assert found.trainer.peak_bytes == 61 + 14 + 56 + 3
    # the engine's 15 and what stays of the trainer
    assert (found.generator.peak_bytes, found.generator.room_bytes) == (20.0, 80.0)
    assert step.rl_step(step_job(offloads=False)).generator.peak_bytes == 20.0 + 42.0
    assert (found.generator.fits, found.trainer.fits) == (True, False)


def test_pools_side_by_side_wait_for_the_slower(parts_of_a_step):
    found = step.rl_step(step_job(is_colocated=False, max_staleness=1, has_reference=False))
    assert found.phases == {
        "policy training": 10.0,
        "weight sync": 1.0,
        "framework": 2.0,
        "waiting for rollouts": 5.0,
    }
    assert found.trainer.peak_bytes == 61 + 56
    assert found.generator.peak_bytes == 15.0
    in_turn = step.rl_step(step_job(is_colocated=False))
    assert in_turn.pace is None
    assert in_turn.phases["generation"] == 30.0


def test_what_does_not_fit_is_no_step(parts_of_a_step, monkeypatch):
    for name in ("memory_of", "rollouts"):
        monkeypatch.setattr(step, name, lambda *_: FULL)
        assert step.rl_step(step_job()) is FULL

"""Weights in a peer's or the host's memory, and sends of a pipeline: by hand, every door, where nothing is gained."""

import json

import pytest
from battery import over
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery import network
from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.execution.weight_offload import elsewhere_bytes, fetches_s, layer_bytes

BASE = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "concurrency": 8}
PEER = BASE | {"weight_offload": "peer", "weight_offload_frac": 0.5}


def deployment(**inputs):
    return orrery.estimate(**inputs).question.deployment


def test_fetches_by_hand():
    """Half of 32 layers: 16 transfers of a 32nd of the weights; 14 layers are spared, for two are buffered."""
    found = deployment(**PEER)
    each = layer_bytes(found)
    assert each == pytest.approx(8.03e9 * 2 / 32, rel=0.01)
    work = network.Collective(kind="send_recv", num_devices=2, message_bytes=each, has_peer_to_peer=True)
    assert fetches_s(found) == pytest.approx(16 * float(network.predict(work, found.cluster.device).time_s))
    assert elsewhere_bytes(found) == pytest.approx(14 * each)
    host = deployment(**PEER | {"weight_offload": "host"})
    assert fetches_s(host) == pytest.approx(16 * each / (host.cluster.device.host.each_way_bytes_per_s * 0.82))


def test_a_pass_takes_the_longer_of_kernels_and_fetches():
    plain, few, many = (
        orrery.estimate(**BASE | more).estimate
        for more in (
            {},
            {"weight_offload": "peer", "weight_offload_frac": 0.05},
            {"weight_offload": "host", "weight_offload_frac": 1.0},
        )
    )
    assert few.tpot_s == plain.tpot_s  # two layers arrive while the others compute
    all_of_them = deployment(**BASE | {"weight_offload": "host", "weight_offload_frac": 1.0})
    assert many.tpot_s > fetches_s(all_of_them) > 5 * plain.tpot_s
    assert many.memory.kv_capacity_tokens > plain.memory.kv_capacity_tokens
    assert many.bound_by == "network"


def test_every_door_says_the_same(capsys, tmp_path):
    words = [w for k, v in PEER.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    file = tmp_path / "mine.toml"
    file.write_text("".join(f"{k} = {v!r}\n" for k, v in PEER.items()))
    found = [orrery.estimate(**PEER).estimate.tpot_s]
    for typed in (words, ["--scenario", str(file)]):
        assert run(["estimate", *typed, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["tpot_s"])
    assert len(set(found)) == 1
    served = orrery.simulate(**PEER, num_requests=64).summary.tpot.mean_s
    assert served == pytest.approx(found[0], rel=0.05)
    plans = orrery.plan(
        **{k: v for k, v in PEER.items() if k != "concurrency"}, tp=1, max_devices=1, rate=0.5, weights="bf16"
    )
    assert plans.plans[0].operation.tpot_s >= fetches_s(deployment(**PEER))
    assert any(n.startswith("weight_offload: 16 layers") for n in orrery.estimate(**PEER).notes)


def test_what_does_not_fit_is_served_from_a_peer():
    large = BASE | {"model": "llama-3.1-70b", "tp": 1, "concurrency": 1}
    assert orrery.estimate(**large).infeasible
    assert orrery.estimate(**large, weight_offload="peer", weight_offload_frac=0.6).estimate.tpot_s > 0


@given(
    st.sampled_from(["llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b"]),
    st.sampled_from(["peer", "host"]),
    st.floats(0.01, 1.0),
    st.integers(1, 64),
    st.sampled_from([1, 2]),
)
@settings(max_examples=25, deadline=None)
def test_never_faster_and_never_faster_than_the_link(model, where, frac, batch, pp):
    plain = {**BASE, "model": model, "concurrency": batch, "pp": pp}
    here = orrery.estimate(**plain).estimate
    away = orrery.estimate(**plain, weight_offload=where, weight_offload_frac=frac)
    assert away.estimate.tpot_s >= here.tpot_s * (1 - 1e-9)
    assert away.estimate.tpot_s * pp >= fetches_s(away.question.deployment) / pp * (1 - 1e-9)
    assert away.estimate.memory.kv_capacity_tokens >= here.memory.kv_capacity_tokens


PIPE = {"model": "llama-3.1-70b", "device": "a100-pcie-80gb", "pp": 4, "output_tokens": 1, "num_requests": 300}
PIPE |= {"max_num_batched_tokens": 4096, "concurrency": 64, "policy": "prefill-first"}


def test_sends_matter_only_between_stages_of_unequal_batches():
    uneven = {"input_tokens": 1000, "input_tokens_std": 800, "lengths": "lognormal"}
    waits, goes_on = (
        orrery.simulate(**PIPE, **uneven, pipeline_sends=s).simulated for s in ("blocking", "non-blocking")
    )
    assert goes_on.duration_s < waits.duration_s
    assert orrery.simulate(**PIPE, **uneven).simulated.duration_s == waits.duration_s
    alone = PIPE | {"pp": 1, "model": "llama-3.1-8b"}
    found = [orrery.simulate(**alone, **uneven, **more) for more in ({}, {"pipeline_sends": "non-blocking"})]
    assert found[0].simulated.duration_s == found[1].simulated.duration_s
    assert any("pp is 1: there is no pipeline" in note for note in found[1].notes)


WRONG = [
    ({"weight_offload": "moon", "weight_offload_frac": 0.5}, "peer, host"),
    ({"weight_offload": "peer"}, "says where, not how much"),
    ({"weight_offload_frac": 0.5}, "all weights are on the devices"),
    ({"weight_offload": "host", "weight_offload_frac": 1.5}, "weight_offload_frac"),
]


@over(WRONG, named=lambda changes, words: words)
def test_what_cannot_be_is_refused_in_words(changes, words):
    with pytest.raises(OrreryError, match=words):
        orrery.estimate(**BASE | changes)


def test_a_way_to_send_that_is_none_is_refused():
    with pytest.raises(OrreryError, match="blocking, non-blocking"):
        orrery.simulate(**BASE, num_requests=4, pipeline_sends="sometimes")

"""Why a technique changes nothing: each reason holds exactly where what it needs is not there."""

import re

import pytest

import orrery
from orrery.scenario.levers.idle import NOTED, Found, idle_because, idle_notes

ONE = Found()
BUSY = Found(
    tp=2,
    pp=2,
    dp=2,
    ep=2,
    cp=2,
    replicas=2,
    has_pools=True,
    has_experts=True,
    has_host_cache=True,
    swaps=True,
    preemptions=3,
)

REASONS = [
    ("overlap", "ladder-residual", ONE, "tp is 1"),
    ("overlap", "ladder-residual", BUSY, ""),
    ("overlap", "token-split", Found(tp=2, hidden_s=0.0), "no step is large enough"),
    ("overlap", "sequential", Found(tp=2, hidden_s=0.0), ""),
    ("overlap", "nano-batches", Found(hidden_s=0.0), "no step is large enough"),
    ("router", "prefix-aware", BUSY, ""),
    ("router", "prefix-aware", Found(replicas=2, shares_beginnings=False), "no two prompts share a beginning"),
    ("router", "session-affinity", Found(replicas=2, has_pauses=False), "no request belongs to a conversation"),
    ("router", "round-robin", Found(replicas=2, has_pauses=False, shares_beginnings=False), ""),
    ("arrivals", "gamma", ONE, ""),
    ("arrivals", "gamma", Found(has_rate=False), "requests do not arrive at a rate"),
    ("overlap_micro_batches", "True", ONE, "the model has no experts"),
    ("overlap_micro_batches", "True", Found(has_experts=True), "ep is 1"),
    ("overlap_micro_batches", "True", Found(has_experts=True, ep=2, takes_turns=False), "a step is one micro-batch"),
    ("overlap_micro_batches", "True", Found(has_experts=True, ep=2, pp=2, takes_turns=False), "vp is 1"),
    ("overlap_micro_batches", "True", BUSY, ""),
    ("overlap_micro_batches", "False", ONE, ""),
    ("all2all_backend", "deepep", Found(has_experts=True), "ranks share no experts"),
    ("all2all_backend", "deepep", BUSY, ""),
    ("router", "least-loaded", ONE, "replicas is 1: there is nothing to choose"),
    ("lend_cache", "True", ONE, "replicas is 1: there is no other cache"),
    ("lend_cache", "False", ONE, ""),
    ("transfer", "layers", ONE, "no cache travels"),
    ("same_node", "True", ONE, "no cache travels"),
    ("same_node", "False", ONE, ""),
    ("think_s", "3", ONE, ""),
    ("think_s", "3", Found(has_pauses=False), "nobody thinks"),
    ("swap", "overlapped", ONE, "nothing leaves the device"),
    ("swap", "overlapped", Found(swaps=True, preemptions=0), "no request is preempted"),
    ("swap", "overlapped", Found(swaps=True, preemptions=1), ""),
    ("swap", "overlapped", Found(has_host_cache=True, preemptions=0), ""),
    ("queue", "shortest", ONE, ""),
    ("queue", "shortest", Found(waiting_requests=0.0), "no request waits"),
    ("preemption", "swap", ONE, ""),
    ("preemption", "swap", Found(preemptions=0), "the KV cache never fills"),
    ("schedule", "1f1b", ONE, "pp is 1"),
    ("pipeline_sends", "early", ONE, "pp is 1"),
    ("tensor_overlap", "rings", ONE, "tp is 1: there is no tensor-parallel collective"),
    ("expert_overlap", "batches", ONE, "the model has no experts"),
    ("expert_overlap", "batches", Found(has_experts=True), "ep is 1"),
    ("expert_overlap", "expert-serial", ONE, ""),
    ("expert_placement", "in-order", ONE, ""),
    ("expert_placement", "balanced", Found(ep=2), "the model has no experts"),
    ("expert_offload", "host", ONE, "the model has no experts"),
    ("sharding", "zero1", ONE, "dp is 1: there is no other rank to share"),
    ("local_updates", "periodic", ONE, "dp is 1: there is no other replica"),
    ("sites_train", "apart", ONE, "dp is 1: there is no other replica"),
    ("gradient_overlap", "buckets", ONE, "dp is 1: there is no other rank to sum"),
    ("gradient_overlap", "buckets", Found(dp=2, sums_by_layer=True), "zero3 without a pipeline"),
    ("weights", "fp8", ONE, ""),
    ("queue", "shortest", Found(requests_alike=True), "requests that wait are alike"),
    ("moe_backend", "triton", ONE, "the model has no experts"),
    ("all2all_backend", "deepep", ONE, "the model has no experts"),
    ("dispatcher", "deepep", ONE, "the model has no experts"),
    ("prefix_caching", "True", ONE, ""),
    ("prefix_caching", "False", Found(shares_beginnings=False), "no two prompts share a beginning"),
    ("prefix_groups", "3", ONE, ""),
    ("prefix_groups", "3", Found(has_prefix=False), "there is no prefix to share"),
    ("host_cache_bytes", "1e9", ONE, ""),
    ("host_cache_bytes", "1e9", Found(shares_beginnings=False), "nothing comes back from it"),
    ("host_cache_bytes", "1e9", Found(shares_beginnings=False, has_adapters=True), ""),
    ("host_cache_bytes", "1e9", Found(shares_beginnings=False, swaps=True, preemptions=1), ""),
    ("host_cache_bytes", "1e9", Found(shares_beginnings=False, swaps=True, preemptions=0), "nothing comes back"),
    ("attainment", "0.9", ONE, ""),
    ("attainment", "0.9", Found(has_objectives=False), "nothing is to be attained"),
    ("kv_kept_tokens", "1.0", ONE, "all of the cache is kept"),
    ("kv_kept_bytes", "0.5", ONE, ""),
    ("context_kind", "ring", ONE, "cp is 1"),
    ("context_kind", "ring", Found(cp=2), ""),
    ("sequence_parallel", "True", ONE, "tp is 1"),
    ("lengths", "lognormal", ONE, ""),
    ("lengths", "lognormal", Found(has_spread=False), "no spread is given"),
    ("lengths", "constant", Found(has_spread=False), ""),
    ("input_tokens_std", "9", Found(spreads_inputs=False), "every prompt counts with the mean"),
    ("output_tokens_std", "9", Found(spreads_outputs=False), "every output counts with the mean"),
    ("host_memory_bytes_per_s", "1e11", ONE, ""),
    ("host_memory_bytes_per_s", "1e11", Found(has_host_experts=False), "no expert lies on the host"),
    ("restart_s", "9", ONE, ""),
    ("detection_s", "9", Found(has_failures=False), "nothing fails"),
]


@pytest.mark.parametrize(("setting", "value", "found", "why"), REASONS)
def test_what_is_missing(setting, value, found, why):
    said = idle_because({setting: value}, found)
    assert said.startswith(why)
    assert bool(said) == bool(why)


def test_nothing_is_missing_where_all_is_there():
    for setting, value, _, _ in REASONS:
        if setting in ("kv_kept_tokens", "kv_kept_bytes"):
            continue  # nothing of a deployment is missing there
        assert idle_because({setting: value}, BUSY) == ""


def test_notes_of_what_was_asked_for():
    """Only of settings that the commands speak of, and of all that change nothing."""
    given = {"queue": "shortest", "router": "least-loaded", "sharding": "zero1", "overlap": "ladder-residual"}
    assert "sharding" not in NOTED
    assert idle_notes(given, Found(waiting_requests=0.0, tp=2)) == (
        "router = least-loaded: no effect on this deployment: replicas is 1: there is nothing to choose between",
        "queue = shortest: no effect on this deployment: no request waits",
    )
    assert idle_notes(given, BUSY) == ()


def test_experts_on_the_host_are_told_at_four_sizes_of_a_step():
    """From one token to a prompt's; with every expert on the device none is missing."""
    asked = {"model": "mixtral-8x7b", "device": "h100-sxm", "input_tokens": 64, "output_tokens": 64, "concurrency": 1}
    (note,) = [n for n in orrery.estimate(**asked, expert_offload="host").notes if n.startswith("expert_offload:")]
    shown = re.findall(r"(\d+) (\d+\.\d+) \(bound (\d+\.\d+)\)", note)
    assert [int(tokens) for tokens, _, _ in shown] == [1, 16, 256, 4096]
    for _, ratio, bound in shown:
        assert 1.0 < float(bound) <= float(ratio)
    assert note.startswith("expert_offload: 50 % of each layer's experts on the device (lru)")

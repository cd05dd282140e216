"""Reasons why a technique has no effect on a deployment, as text: what it needs to act on is not there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orrery.base.technique import ACTS_ALONE
from orrery.execution.overlap import OVERLAPS
from orrery.execution.overlapped import SEQUENTIAL
from orrery.training.launches import OF_EXPERTS, read_scopes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Properties of a deployment that techniques act on. Degrees that a layout leaves out are 1."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    cp: int = 1
    replicas: int = 1
    has_pools: bool = False  # prompts have replicas of their own
    has_experts: bool = False
    has_fused_attention: bool = True
    sums_by_layer: bool = False  # gradients leave with their layer, micro-batch by micro-batch
    has_host_cache: bool = False
    has_pauses: bool = True  # people, turns or calls, which think between requests
    shares_beginnings: bool = True  # prompts may begin alike
    has_prefix: bool = True  # they begin with a prefix of a given length
    has_adapters: bool = False
    has_objectives: bool = True
    has_failures: bool = True
    requests_alike: bool = False  # one length of prompts and one of outputs
    has_spread: bool = True  # of lengths around their mean
    spreads_inputs: bool = True  # it counts for prompts
    spreads_outputs: bool = True
    has_host_experts: bool = True
    swaps: bool = False
    waiting_requests: float = 1.0  # requests that wait for a slot, on average
    preemptions: int = 1
    hidden_s: float = 1.0  # device time that an overlap saved
    has_rate: bool = True  # requests arrive at one
    takes_turns: bool = True  # a device has two micro-batches, or chunks of them, to take turn about


def idle_because(settings: Mapping[str, object], found: Found) -> str:
    """Why these settings change nothing here; blank where nothing is known to be missing."""
    for setting, value in settings.items():
        if why := _WHY.get(setting, _nothing)(str(value), found):
            return why
    return ""


NOTED = (
    "overlap",
    "pipeline_sends",
    "router",
    "lend_cache",
    "transfer",
    "same_node",
    "think_s",
    "swap",
    "queue",
    "preemption",
    "tensor_overlap",
    "local_updates",
    "gradient_overlap",
    "expert_overlap",
    "expert_placement",
    "prefix_caching",
    "prefix_groups",
    "host_cache_bytes",
    "attainment",
    "context_kind",
    "sequence_parallel",
    "moe_backend",
    "dispatcher",
    "detection_s",
    "restart_s",
    "arrivals",
    "overlap_micro_batches",
)
"""Settings of which the plain commands say that they change no number, where one of the reasons below holds."""

NOTED_OF_RUNS = (*NOTED, "host_memory_bytes_per_s", "lengths", "input_tokens_std", "output_tokens_std")
"""The same of a simulated run."""

NOTED_OF_PLANS = ("think_s", "moe_backend", "kv_kept_tokens", "kv_kept_bytes", "all2all_backend")
"""The same of a plan, whatever its layouts."""

NOTED_OF_LAYOUTS = (*NOTED_OF_PLANS, "overlap")
"""The same of a plan whose layouts are known."""

NOTED_OF_ONE = (*NOTED_OF_PLANS[:-1], "host_memory_bytes_per_s", "input_tokens_std", "output_tokens_std")
"""The same of an estimate, which says the rest beside what it computes."""


NOTED_OF_FRAMEWORKS = ("native_attention", "cuda_graphs", "overlap_micro_batches")
"""The same of a training job or the plan of one, whatever its layouts."""

SOME = 2
"""A degree where layouts of a plan have several."""


def idle_notes(given: Mapping[str, object], found: Found, names: Iterable[str] = NOTED) -> tuple[str, ...]:
    """A note for every technique that was asked for and changes no number of this deployment."""
    whys = ((name, idle_because({name: given[name]}, found)) for name in names if name in given)
    return tuple(f"{name} = {given[name]}: no effect on this deployment: {why}" for name, why in whys if why)


def _nothing(value: str, found: Found) -> str:
    return ""


def _overlap(value: str, f: Found) -> str:
    if f.tp == 1 and ACTS_ALONE not in OVERLAPS.get(value).traits:
        return "tp is 1: there is no all-reduce to hide"
    return "" if f.hidden_s or value == SEQUENTIAL else "no step is large enough for it to pay"


def _router(value: str, f: Found) -> str:
    if f.replicas == 1:
        return "replicas is 1: there is nothing to choose between"
    if value == "prefix-aware" and not f.shares_beginnings:
        return OTHERWISE["prefix_caching"]
    if value == "session-affinity" and not f.has_pauses:
        return "no request belongs to a conversation (--users, --turns, --calls)"
    return ""


def _lend(value: str, f: Found) -> str:
    return "replicas is 1: there is no other cache to lend from" if f.replicas == 1 and value == "True" else ""


def _transfer(value: str, f: Found) -> str:
    return "" if f.has_pools else "no cache travels: prompts have no replicas of their own (--prefill-replicas)"


def _same_node(value: str, f: Found) -> str:
    return _transfer(value, f) if value == "True" else ""


def _think(value: str, f: Found) -> str:
    return "" if f.has_pauses else "nobody thinks between requests (--users, --turns, --calls)"


def _swap(value: str, f: Found) -> str:
    if f.has_host_cache or (f.swaps and f.preemptions):
        return ""
    return (
        "no request is preempted" if f.swaps else "nothing leaves the device: write --preemption swap or a host cache"
    )


def _queue(value: str, f: Found) -> str:
    if not f.waiting_requests:
        return "no request waits"
    return OTHERWISE["queue"] if f.requests_alike else ""


def _preemption(value: str, f: Found) -> str:
    return "the KV cache never fills: no request is preempted" if not f.preemptions else ""


def _schedule(value: str, f: Found) -> str:
    return "pp is 1: there is no pipeline" if f.pp == 1 else ""


def _pipeline_sends(value: str, f: Found) -> str:
    return "pp is 1: there is no pipeline" if f.pp == 1 else ""


def _tensor_overlap(value: str, f: Found) -> str:
    return "tp is 1: there is no tensor-parallel collective to hide" if f.tp == 1 else ""


def _experts(value: str, f: Found) -> str:
    if value in ("expert-serial", "in-order"):
        return ""
    if not f.has_experts:
        return "the model has no experts"
    return "ep is 1: no token leaves its rank for an expert" if f.ep == 1 else ""


def _turns(value: str, f: Found) -> str:
    if value != "True":
        return ""
    if why := _experts(value, f):
        return why
    if f.takes_turns:
        return ""
    return (
        "a step is one micro-batch"
        if f.pp == 1
        else "vp is 1: a rank of the pipeline has no two chunks to take turn about"
    )


def _arrivals(value: str, f: Found) -> str:
    return "" if f.has_rate else "requests do not arrive at a rate (--rate)"


def _has_experts(value: str, f: Found) -> str:
    return "" if f.has_experts else "the model has no experts"


def _exchange(value: str, f: Found) -> str:
    return _has_experts(value, f) or ("ranks share no experts (write dp and ep above 1)" if f.ep == 1 else "")


def _native_attention(value: str, f: Found) -> str:
    return "" if f.has_fused_attention else "no fused attention runs in this job"


def _cuda_graphs(value: str, f: Found) -> str:
    scopes = read_scopes(value)
    return _has_experts(value, f) if scopes and scopes <= OF_EXPERTS else ""


def _sharding(value: str, f: Found) -> str:
    return "dp is 1: there is no other rank to share the states with" if f.dp == 1 else ""


def _local_updates(value: str, f: Found) -> str:
    return "dp is 1: there is no other replica to exchange with" if f.dp == 1 else ""


def _gradient_overlap(value: str, f: Found) -> str:
    if f.dp == 1:
        return "dp is 1: there is no other rank to sum gradients with"
    return "zero3 without a pipeline sums each layer's gradients as its pass ends" if f.sums_by_layer else ""


def _prefix_caching(value: str, f: Found) -> str:
    return "" if f.shares_beginnings else OTHERWISE["prefix_caching"]


def _prefix_groups(value: str, f: Found) -> str:
    return "" if f.has_prefix else "there is no prefix to share (--prefix-tokens)"


def _host_cache(value: str, f: Found) -> str:
    comes_back = f.shares_beginnings or f.has_adapters or (f.swaps and f.preemptions)
    return "" if comes_back else f"nothing comes back from it: {OTHERWISE['prefix_caching']}"


def _attainment(value: str, f: Found) -> str:
    return "" if f.has_objectives else "nothing is to be attained (--slo)"


def _all_kept(value: str, f: Found) -> str:
    return OTHERWISE["kv_kept_tokens"] if float(value) == 1.0 else ""


def _lengths(value: str, f: Found) -> str:
    is_even = not f.has_spread and value != "constant"
    return "no spread is given (--input-tokens-std, --output-tokens-std)" if is_even else ""


def _spread_of_inputs(value: str, f: Found) -> str:
    return "" if f.spreads_inputs else "every prompt counts with the mean length"


def _spread_of_outputs(value: str, f: Found) -> str:
    return "" if f.spreads_outputs else "every output counts with the mean length"


def _host_memory(value: str, f: Found) -> str:
    return "" if f.has_host_experts else "no expert lies on the host (--expert-offload)"


def _failures(value: str, f: Found) -> str:
    return "" if f.has_failures else "nothing fails (--train-tokens, with --node-mtbf-s or --device-mtbf-s)"


def _context_kind(value: str, f: Found) -> str:
    return "cp is 1: no context is cut" if f.cp == 1 else ""


def _sequence_parallel(value: str, f: Found) -> str:
    return "tp is 1: nothing is cut along the sequence" if f.tp == 1 else ""


_WHY = {
    "overlap": _overlap,
    "router": _router,
    "lend_cache": _lend,
    "transfer": _transfer,
    "same_node": _same_node,
    "think_s": _think,
    "swap": _swap,
    "queue": _queue,
    "preemption": _preemption,
    "schedule": _schedule,
    "pipeline_sends": _pipeline_sends,
    "tensor_overlap": _tensor_overlap,
    "expert_overlap": _experts,
    "expert_placement": _experts,
    "expert_offload": _has_experts,
    "sharding": _sharding,
    "local_updates": _local_updates,
    "gradient_overlap": _gradient_overlap,
    "sites_train": _local_updates,
    "moe_backend": _has_experts,
    "all2all_backend": _exchange,
    "dispatcher": _has_experts,
    "native_attention": _native_attention,
    "cuda_graphs": _cuda_graphs,
    "overlap_micro_batches": _turns,
    "arrivals": _arrivals,
    "lengths": _lengths,
    "input_tokens_std": _spread_of_inputs,
    "output_tokens_std": _spread_of_outputs,
    "host_memory_bytes_per_s": _host_memory,
    "detection_s": _failures,
    "restart_s": _failures,
    "prefix_caching": _prefix_caching,
    "prefix_groups": _prefix_groups,
    "host_cache_bytes": _host_cache,
    "attainment": _attainment,
    "kv_kept_tokens": _all_kept,
    "kv_kept_bytes": _all_kept,
    "context_kind": _context_kind,
    "sequence_parallel": _sequence_parallel,
}

OTHERWISE: Mapping[str, str] = {
    "prefix_caching": "no two prompts share a beginning (--prefix-tokens, --turns, or a trace that says so)",
    "policy": "no step of this run holds what the policy would order otherwise",
    "queue": "requests that wait are alike, so any order is the same",
    "router": "replicas are equally loaded at every arrival",
    "expert_placement": "every expert gets as many tokens (--expert-loads)",
    "expert_overlap": "every expert gets as many tokens (--expert-loads)",
    "preemption": "no request is preempted",
    "swap": "nothing leaves the device in this run",
    "lend_cache": "no replica runs out of KV cache",
    "weights": "the deployment has these weights already",
    "kv": "the deployment has this KV cache already",
    "recompute": "the framework recomputes so by default",
    "sharding": "the framework shards so by default",
    "precision": "the deployment trains so already",
    "kv_kept_tokens": "all of the cache is kept",
    "kv_kept_bytes": "all of the cache is kept",
}
"""The likeliest missing condition where both sides come out alike and nothing above explains it."""

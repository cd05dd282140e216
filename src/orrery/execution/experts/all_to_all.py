"""Engines' names for the dispatch of tokens to experts on other ranks, and each engine's own choice."""

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.sources import Fact
from orrery.execution.experts.dispatch import ALL_TO_ALL, DEEPEP, GATHER, dispatcher_of
from orrery.execution.experts.placed import placed
from orrery.execution.layout import Deployment
from orrery.execution.shard import has_exchange, shard

SPELLINGS = {
    GATHER: ("allgather-reducescatter", "naive", "none", "allgather", "nccl"),
    ALL_TO_ALL: ("alltoall", "all2all"),
    DEEPEP: ("deep-ep",),
    "deepep-normal": ("deepep-high-throughput",),
    "deepep-low-latency": ("deepeplowlatency",),
    "tensorrt-llm-one-sided": ("flashinfer-nvlink-one-sided", "nvlinkonesided", "nvlink-one-sided", "flashinfer"),
    "tensorrt-llm-two-sided": (
        "flashinfer-nvlink-two-sided",
        "flashinfer-all2allv",
        "nvlinktwosided",
        "nvlink-two-sided",
    ),
}
"""Our names and those of vLLM (--all2all-backend), SGLang (--moe-a2a-backend) and TensorRT-LLM (moe_comm_method), in
lower case with dashes. SGLang's ``flashinfer`` is FlashInfer's one-sided kernel, which came from TensorRT-LLM."""

UNMEASURED = ("pplx", "mori", "mori-high-throughput", "mori-low-latency", "mooncake", "nixl", "nixl-ep", "deepep-v2")
"""Libraries that engines have and whose times no table holds."""

_KNOWN = {word: name for name, others in SPELLINGS.items() for word in (name, *others)}


def get_dispatcher(word: str) -> str:
    """The way that a user's word means; blank stays blank (the engine's choice)."""
    plain = word.strip().casefold().replace("_", "-").replace(" ", "-")
    if plain and plain in UNMEASURED:
        raise ScenarioError(
            f"all2all_backend: {word}: nobody has measured it here; write {', '.join(SPELLINGS)}, or leave it out."
        )
    if plain and plain not in _KNOWN:
        raise UnknownName("all2all_backend", word, tuple(SPELLINGS))
    return _KNOWN.get(plain, "")


def dispatcher_note(deployment: Deployment) -> str:
    """The dispatcher and the reason for it; blank where every rank has its own experts and nobody asked."""
    requested = deployment.dispatcher
    if not has_exchange(deployment):
        return f"all2all_backend: {requested} is not used; ranks share no experts (write dp and ep above 1)" * bool(
            requested
        )
    experts = shard(deployment).experts[0]
    way = dispatcher_of(deployment, experts)
    if (found := placed(deployment)) and found.is_copied:
        return "all2all_backend: all-to-all, one a layer: every device keeps the context of all"
    if requested:
        return f"all2all_backend: {way}, not {requested}; experts are cut over {experts.tp} devices" * (
            way != requested
        )
    fact: Fact | None = next(
        (f for k in ("wide_dispatcher", "dispatcher") if (f := deployment.engine.facts.get(k)) and f.value == way), None
    )
    return f"all2all_backend: {way}" + (f" ({fact.at})" if fact and fact.at else "")

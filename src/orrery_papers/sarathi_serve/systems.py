"""The systems that Sarathi-Serve compares, on its machines, and its traffic."""

from dataclasses import dataclass, replace

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Setup
from orrery.execution.layout import Deployment
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery_papers.shared.setup import deployment, length_of, requests

COUNT = 768
"""Requests of a run; the paper's have 2048, which take three times as long and give the same ratios."""

SEQS = 128
"""Sequences of a step where their number was not found: [unstated] yi_files."""

ORCA_SEQS, ORCA_SEQS_OF_MANY = 16, 8
"""Sequences of Orca: on one or two devices, and on eight (the artifact's files)."""

CONTEXT_TOKENS = 4096
"""Prompts behind the decode steps that section 3.3 and the objectives speak of."""


@dataclass(frozen=True, slots=True)
class Way:
    """Batching of a system: its policy, and its budget ("context": the longest prompt in one step)."""

    policy: str
    is_chunked: bool = False
    is_orca: bool = False


WAYS = {
    "sarathi": Way("chunked-prefill", is_chunked=True),
    "chunks-in-turn": Way("alternating", is_chunked=True),
    "vllm": Way("prefill-first"),
    "orca": Way("iteration-level", is_orca=True),
}


def served_on(setup: Setup, *, layout: str, budget_tokens: int, max_num_seqs: int) -> Deployment:
    """The engine on that layout; two devices talk over the bridge between them, more of them over PCIe."""
    d = deployment(setup, layout=layout, max_num_seqs=max_num_seqs, max_num_batched_tokens=budget_tokens)
    if d.layout.tp != 2 or "nvlink between pairs" not in setup.word("link_within_node"):
        return d
    bridged = replace(d.cluster.device, scaleup=get_device("a100-sxm-80gb").scaleup)
    return replace(d, cluster=replace(d.cluster, device=bridged))


def service(setup: Setup, system: str, budget_tokens: int, layout: str = "") -> Service:
    """One of the three systems; those that run whole prompts take the longest context in one step."""
    way, context = WAYS[system], int(setup.number("max_context_tokens"))
    seqs = int(setup.number("max_num_seqs", SEQS))
    if way.is_orca:
        seqs = ORCA_SEQS if setup.number("num_devices") <= 2 else ORCA_SEQS_OF_MANY
    d = served_on(
        setup,
        layout=layout or setup.word("layout"),
        max_num_seqs=seqs,
        budget_tokens=budget_tokens if way.is_chunked else context,
    )
    return Service(pools=(Pool(deployment=d),), policy=way.policy)


def traffic(setup: Setup, rate_per_s: float, count: int = COUNT) -> Requests:
    """Requests of the set-up's data set at a rate."""
    return requests(
        length_of(setup, "input"),
        length_of(setup, "output"),
        rate_per_s,
        count,
        most_tokens=setup.number("max_context_tokens"),
    )

"""Draw of a chain of filters, stage by stage, and relevant messages a joule."""

from dataclasses import dataclass
from itertools import count

from orrery.base.errors import ScenarioError
from orrery.base.experiment import Experiment, Row, Run, numbers
from orrery.fleet.filters import Filter, f1_frac, through

LISTS = {
    "relevant_kept": 1.0,
    "other_kept": 1.0,
    "message_bytes": 1e15,
    "message_flops": 1e18,
    "energy_j_per_bytes": 1e3,
    "energy_j_per_flops": 1e3,
    "idle_w": 1e12,
}
"""Sizes that are lists, one number a stage, and the most that each may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Messages a second and the relevant share of them; then one number a stage, comma-separated; one stands for all.

    The defaults are made up: two stages, the second with ten times the work.
    """

    rate_hz: float = 1e6
    relevant_frac: float = 1e-4
    relevant_kept: str = "0.95,0.9"
    other_kept: str = "0.01,0.01"
    message_bytes: str = "1e6"
    message_flops: str = "1e8,1e9"
    energy_j_per_bytes: str = "1e-10"
    energy_j_per_flops: str = "1e-11"
    idle_w: str = "0"


def run(request: Run) -> tuple[Row, ...]:
    """A row a stage, and one for the whole chain."""
    sizes: Sizes = request.sizes
    if not 0.0 < sizes.rate_hz <= 1e15 or not 0.0 < sizes.relevant_frac < 1.0:
        raise ScenarioError("set: write rate_hz above 0 and relevant_frac between 0 and 1.")
    flows = through(stages_of(sizes), sizes.rate_hz, sizes.relevant_frac)
    first, last, total_w = flows[0], flows[-1], sum(flow.total_w for flow in flows)
    rows: list[Row] = [
        {
            "stage": f"{number}",
            "in_hz": flow.total_hz,
            "relevant_hz": flow.relevant_hz,
            "link_w": flow.link_w,
            "compute_w": flow.compute_w,
            "total_w": flow.total_w,
        }
        for number, flow in zip(count(1), flows[:-1], strict=False)
    ]
    chain: Row = {
        "stage": "chain",
        "in_hz": first.total_hz,
        "relevant_hz": last.relevant_hz,
        "out_hz": last.total_hz,
        "link_w": sum(flow.link_w for flow in flows),
        "compute_w": sum(flow.compute_w for flow in flows),
        "total_w": total_w,
        "energy_per_relevant_j": total_w / last.relevant_hz if last.relevant_hz else float("nan"),
        "f1_frac": f1_frac(first, last),
    }
    return (*rows, chain)


def stages_of(sizes: Sizes) -> list[Filter]:
    """The stages: as many as the longest list has numbers."""
    lists = {name: numbers(name, getattr(sizes, name), most=most) for name, most in LISTS.items()}
    longest = max(len(found) for found in lists.values())
    if wrong := [name for name, found in lists.items() if len(found) not in (1, longest)]:
        raise ScenarioError(
            f"set: {wrong[0]} has {len(lists[wrong[0]])} numbers; write one, or {longest} as others do."
        )
    columns = {name: found * (longest if len(found) == 1 else 1) for name, found in lists.items()}
    return [
        Filter(
            relevant_kept_frac=columns["relevant_kept"][stage],
            other_kept_frac=columns["other_kept"][stage],
            message_bytes=columns["message_bytes"][stage],
            message_flops=columns["message_flops"][stage],
            energy_j_per_bytes=columns["energy_j_per_bytes"][stage],
            energy_j_per_flops=columns["energy_j_per_flops"][stage],
            idle_w=columns["idle_w"][stage],
        )
        for stage in range(longest)
    ]


EXPERIMENT = Experiment(
    name="filter-chain",
    question="What does a chain of filters draw, and how many relevant messages does a joule keep?",
    run=run,
    num_steps=1,
    claims=("hep-daq-model",),
    sizes=Sizes,
    keys=("stage",),
)

"""Packet spraying: the busiest link of a leaf-spine fabric under a hash, spraying, and assigned single paths."""

from collections.abc import Iterator, Mapping

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.kernel_rows import kernel_rows

ROUTINGS = ("spray", "singlepath", "ecmp")


def predict(paper: Paper) -> Iterator[Prediction]:
    """The worst of some permutations for assigned paths; what a hash does to the same ones is told beside it."""
    setup = paper.setups["leaf-spine"]
    drawn = [busiest(setup, seed) for seed in range(int(setup.number("num_draws")))]
    by_hash = [each["ecmp"] / each["spray"] for each in drawn]
    yield Prediction(
        claim="congestion",
        predicted=max(each["singlepath"] / each["spray"] for each in drawn),
        differs="flows may not be cut as far as numbers would need",
        because=f"{len(drawn)} permutations over {setup.number('num_leaves'):g} leaves and "
        f"{setup.number('num_spines'):g} spines, flows in as many parts as even paths need; by a hash the busiest link "
        f"carries {min(by_hash):.2f} to {max(by_hash):.2f} times as much",
    )


def busiest(setup: Setup, seed: int) -> Mapping[str, float]:
    """``orrery kernel permutation``: bytes on the busiest link by routing, of one permutation."""
    rows = kernel_rows(
        "permutation",
        device=setup.word("device"),
        fabric="leaf-spine",
        message_bytes=1e6,
        leaves=int(setup.number("num_leaves")),
        spines=int(setup.number("num_spines")),
        hosts_per_leaf=int(setup.number("num_hosts_per_leaf")),
        flow_parts=int(setup.number("num_flow_parts")),
        draws=1,
        seed=seed,
    )
    return {routing: float(rows[routing].details["busiest_link_bytes"]) for routing in ROUTINGS}

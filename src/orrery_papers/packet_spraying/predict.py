"""Packet spraying: the busiest link of a leaf-spine fabric under a hash, spraying, and assigned single paths."""

from collections.abc import Iterator

import numpy as np

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery.network.leaf_spine import assigned, hashed, parts_needed, sprayed
from orrery_papers.packet_spraying.permutation import shuffled


def predict(paper: Paper) -> Iterator[Prediction]:
    """The worst of some permutations for assigned paths; what a hash does to the same ones is told beside it."""
    setup, random = paper.setups["leaf-spine"], np.random.default_rng(0)
    sizes = (int(setup.number(name)) for name in ("num_leaves", "num_spines", "num_hosts_per_leaf"))
    leaves, spines, hosts = sizes
    drawn = [shuffled(leaves, spines, hosts, random) for _ in range(int(setup.number("num_draws")))]
    parts = int(setup.number("num_flow_parts"))
    worst = max(assigned(flows, parts) / sprayed(flows) for flows in drawn)
    most = max(parts_needed(flows) for flows in drawn)
    by_hash = [hashed(flows, random) / sprayed(flows) for flows in drawn]
    yield Prediction(
        claim="congestion",
        predicted=worst,
        differs="flows may not be cut as far as numbers would need",
        because=f"{len(drawn)} permutations over {leaves} leaves and {spines} spines, flows in {most} parts at most; "
        f"by a hash the busiest link carries {min(by_hash):.2f} to {max(by_hash):.2f} times as much",
    )

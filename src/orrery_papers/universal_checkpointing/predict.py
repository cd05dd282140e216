"""Universal checkpointing: save, convert and load times from every node's storage; and going on with fewer nodes."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Claim, Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.reshape.restart import Outage, Recovery, recovery
from orrery.training.reshape.storage import ReshapeTimes, Storage, reshape_times, sequential_convert_s

BECAUSE = {
    "reconfiguration_share": "convert and load over the mean time between failures",
    "conversion_speedup": "all nodes' storage against one node's",
    "save_time": "14 bytes a parameter over the storage of all nodes",
    "convert_time": "14 bytes a parameter read and 12 written",
    "load_time": "12 bytes a parameter read once",
    "all_time": "save, convert and load",
}

PACKING = (
    "packing, unpacking and opening files, which are not modelled, take most of the time: of all these only the save "
    "of 1T is bound by storage"
)
LARGEST_SAVE = (
    "its bytes were written in less time than they take at the stated rate of a node: that rate is a lower one than "
    "this save's, or fewer bytes of a parameter were written"
)
DIFFERS = {
    "conversion_speedup": "nodes convert on many cores and the baseline on one, which storage does not show",
    "save_time": PACKING,
    "convert_time": PACKING,
    "load_time": PACKING,
    "all_time": PACKING,
}
"""Explanations of a difference, by metric."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Every row of the table, and the headlines about the largest model."""
    for claim in paper.claims:
        if claim.metric in BECAUSE:
            yield Prediction(
                claim=claim.id,
                predicted=answer(claim),
                because=BECAUSE[claim.metric],
                differs=LARGEST_SAVE if claim.id == "1t-save" else DIFFERS.get(claim.metric, ""),
            )


def answer(claim: Claim) -> float:
    """The claim's metric."""
    found, setup = times(claim.setup), claim.setup
    sequential_s = sequential_convert_s(setup.number("num_parameters"), storage(setup))
    return {
        "reconfiguration_share": found.reshape_s / setup.number("mean_between_failures_s"),
        "conversion_speedup": sequential_s / found.convert_s,
        "save_time": found.save_s,
        "convert_time": found.convert_s,
        "load_time": found.load_s,
        "all_time": found.all_s,
    }[claim.metric]


def storage(setup: Setup, share: float = 1.0) -> Storage:
    """The storage of that share of the nodes."""
    nodes = int(setup.number("num_nodes") * share)
    return Storage(num_nodes=nodes, node_bytes_per_s=setup.number("storage_bytes_per_s"))


def times(setup: Setup) -> ReshapeTimes:
    """On the same nodes before and after."""
    return reshape_times(setup.number("num_parameters"), storage(setup), storage(setup))


def fewer_nodes(setup: Setup, repair_s: float, share: float = 0.5) -> Recovery:
    """Going on with that share of the nodes against waiting for a repair, speed being in proportion to nodes."""
    whole, part, parameters = storage(setup), storage(setup, share), setup.number("num_parameters")
    outage = Outage(
        repair_s=repair_s,
        remaining_frac=share,
        load_s=times(setup).load_s,
        reshape_s=reshape_times(parameters, whole, part).reshape_s,
        back_s=reshape_times(parameters, part, whole).all_s,
    )
    return recovery(outage)

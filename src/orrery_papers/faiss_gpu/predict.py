"""Faiss on GPUs: searches among vectors from products, streams and look-ups, over devices that share an index."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.faiss_gpu.lists import InvertedLists, SearchDevice

DIFFERS = (
    "kernels are taken at their roofs: look-ups meet in the same banks, lists of unlike length leave processors idle, "
    "and small batches of queries launch many kernels"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The graph over a billion vectors, then searches."""
    claims = {claim.id: claim for claim in paper.claims}
    for name in ("graph-1b", "graph-1b-128", "graph-1b-1", "sift1b"):
        setup = claims[name].setup
        index, on = lists(setup), device(setup)
        shares = setup.number("num_devices") / setup.number("num_index_replicas")
        each_s = index.query_s(on, setup.number("num_probes"), 1.0 / shares)
        yield Prediction(
            claim=name,
            predicted=setup.number("num_queries") * each_s / setup.number("num_index_replicas"),
            because=f"{each_s * 1e6:.1f} µs a query on one of {shares:.0f} shards: "
            f"{on.all_distances_s(index.num_lists, index.num_features) * 1e6:.1f} for centres, then for each of "
            f"{setup.number('num_probes'):.0f} lists {index.table_s(on) * 1e9:.0f} ns for its table and "
            f"{index.scan_s(on, 1.0 / shares) * 1e9:.0f} ns for its codes",
            differs=DIFFERS,
        )
    setup = claims["exact-sift1m"].setup
    each_s = device(setup).all_distances_s(setup.number("num_index_vectors"), setup.number("num_vector_features"))
    yield Prediction(
        claim="exact-sift1m",
        predicted=setup.number("num_queries") * each_s,
        because=f"{each_s * 1e6:.1f} µs a query: a row of the product, written and read once",
    )


def lists(setup: Setup) -> InvertedLists:
    """The set-up's index."""
    return InvertedLists(
        num_vectors=setup.number("num_index_vectors"),
        num_features=setup.number("num_vector_features"),
        num_lists=setup.number("num_lists"),
        code_bytes=setup.number("code_bytes"),
    )


def device(setup: Setup) -> SearchDevice:
    """The set-up's device."""
    return SearchDevice(
        flops_per_s=setup.number("fp32_flops_per_s"),
        num_lookups_per_s=setup.number("num_lookups_per_s"),
        bandwidth_bytes_per_s=setup.number("memory_bandwidth_bytes_per_s"),
    )

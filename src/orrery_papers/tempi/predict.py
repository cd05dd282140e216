"""TEMPI: a million runs of a byte, packed by copies and by a kernel, and sent."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.tempi.strided import Strided, canonical, copied_s, packed_s, sent_by_copies_s, sent_s

STRIDE_BYTES = 1024
"""Between runs, from start to start: a row of the allocation."""


def predict(paper: Paper) -> Iterator[Prediction]:
    """Packing, then sending."""
    setup = paper.setups["object"]
    data, device = strided(setup), get_device(setup.word("device"))
    copy_s, kernel_s = setup.number("copy_call_s"), setup.number("kernel_call_s")
    before, after = copied_s(data, device, copy_s), packed_s(data, device, kernel_s)
    yield Prediction(
        claim="pack",
        predicted=before / after,
        differs="what a copy takes on that machine was not found",
        because=f"{data.num_runs} runs of {data.run_bytes} bytes: {before:.3g} s in copies, "
        f"{after * 1e6:.3g} µs in one kernel",
    )
    before, after = sent_by_copies_s(data, device, copy_s), sent_s(data, device, kernel_s)
    yield Prediction(
        claim="send",
        predicted=before / after,
        because=f"{before:.3g} s with copies on both sides, {after * 1e6:.3g} µs packed, sent and unpacked",
        differs="the message's own way through MPI takes longer than its bytes on the wire and one latency",
    )


def strided(setup: Setup) -> Strided:
    """The set-up's object: rows of runs, as wide as a row of the allocation where runs are wider."""
    run = int(setup.number("num_run_bytes"))
    return canonical(1, [(run, 1), (int(setup.number("num_datatype_bytes")) // run, max(STRIDE_BYTES, run))])

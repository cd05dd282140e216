"""Onesweep: what a pass reads and writes, and what that costs on a device."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.kernel_rows import kernel_rows


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gain, the rate, and the crossings of one pass: ``orrery kernel sort``."""
    setup = paper.setups["onesweep"]
    keys = int(setup.number("num_keys"))
    rows = kernel_rows("sort", device=setup.word("device"), keys=keys)
    ours, theirs = rows["onesweep"], rows["cub"]
    words = "{passes} passes, {crossings:g} crossings of every key".format(**ours.details)
    words += ", against {passes} and {crossings:g}".format(**theirs.details)
    words += f"; {ours.time_s * 1e3:.2f} and {theirs.time_s * 1e3:.2f} ms"
    yield Prediction(
        claim="speedup",
        predicted=theirs.time_s / ours.time_s,
        because=words,
        differs="what a block waits while it looks back, which the baseline never does, is not counted",
    )
    yield Prediction(
        claim="sort-rate",
        predicted=ours.details["keys_per_s"],
        because=words,
        differs="blocks write short runs at odd places and look back for offsets, so that a pass streams less well",
    )
    counted = 1.0  # read once, before the passes
    each = (ours.bytes / (keys * setup.number("num_key_bits") / 8.0) - counted) / ours.details["passes"]
    yield Prediction(
        claim="crossings",
        predicted=each,
        because=f"every key read and written, and {each - 2.0:.3f} words of offsets a key in tiles that look back",
    )

"""Onesweep: what a pass reads and writes, and what that costs on a device."""

from collections.abc import Iterator

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.kernels.sort.radix import RadixSort, sort_s


def predict(paper: Paper) -> Iterator[Prediction]:
    """The gain, the rate, and the crossings of one pass."""
    ours, theirs = paper.setups["onesweep"], paper.setups["cub"]
    swept, counted = one_sweep(ours), counting(theirs)
    new, old = time_s(ours, swept), time_s(theirs, counted)
    bits = int(ours.number("num_key_bits"))
    words = (
        f"{swept.num_passes(bits)} passes, {swept.num_crossings(bits):g} crossings of every key, against "
        f"{counted.num_passes(bits)} and {counted.num_crossings(bits):g}; {new * 1e3:.2f} and {old * 1e3:.2f} ms"
    )
    yield Prediction(claim="speedup", predicted=old / new, because=words)
    yield Prediction(
        claim="sort-rate",
        predicted=ours.number("num_keys") / new,
        because=words,
        differs="blocks write short runs at odd places and look back for offsets, so that a pass streams less well",
    )
    each = swept.num_pass_operations
    yield Prediction(
        claim="crossings",
        predicted=each,
        because=f"every key read and written, and {each - 2.0:.3f} words of offsets a key in tiles of "
        f"{swept.num_tile_keys} that look back",
    )


def one_sweep(setup: Setup) -> RadixSort:
    """All digits counted first, blocks that look back."""
    return RadixSort(
        digit_bits=int(setup.number("num_digit_bits")),
        num_counting_reads=0,
        num_first_reads=1,
        num_tile_keys=int(setup.number("num_tile_keys")),
    )


def counting(setup: Setup) -> RadixSort:
    """Every pass counts its own digit."""
    return RadixSort(digit_bits=int(setup.number("num_digit_bits")), num_counting_reads=1, num_first_reads=0)


def time_s(setup: Setup, way: RadixSort) -> float:
    """Time (s) to sort the set-up's keys on its device."""
    device = get_device(setup.word("device"))
    return sort_s(way, setup.number("num_keys"), int(setup.number("num_key_bits")), device)

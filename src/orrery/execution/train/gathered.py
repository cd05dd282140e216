"""A layer whose busiest experts come to every rank for the time of a pass, so that their tokens need not travel."""

from collections.abc import Callable

import numpy as np

from orrery.execution.train.loads import fullest
from orrery.execution.train.overlap import Floats, Pair


def best_gathered_s(pair: Pair, most_gathered: int, added_s: Callable[[Floats], Floats]) -> Floats:
    """The best number of gathered experts up to the most; ``added_s`` of their gathers is what those add.

    Their tokens stay where they are, one share of them on each rank. With f the fullest rank's part of all, l that of
    the rest and s the part that stays: experts take (s/ranks + l)/f of their time, and the exchange, which waits for
    the rank that receives most, l/f of it. With even loads some rank keeps all of its own, so neither share is below
    1: no gain.
    """
    best_s = pair.serial_s
    share = np.atleast_2d(np.asarray(pair.expert_share, dtype=np.float64))
    if not share.size:
        return best_s
    busiest = np.argsort(-share, axis=1, kind="stable")
    full = _fullest(share, pair.num_ranks)
    most = share.shape[1] - share.shape[1] // pair.num_ranks  # all but one rank's; whole layers are ZeRO-3's to gather
    for gathered in range(1, min(most_gathered, most) + 1):
        rest = share.copy()
        np.put_along_axis(rest, busiest[:, :gathered], 0.0, axis=1)
        stays, left = float((share - rest).sum(axis=1).mean()), _fullest(rest, pair.num_ranks)
        work_s = (stays / pair.num_ranks + left) / full * (pair.compute_s + pair.backward_weight_s)
        travel_s = left / full * (pair.network_s + pair.inside_s)
        best_s = np.minimum(best_s, work_s + travel_s + added_s(gathered * pair.expert_gather_s))
    return best_s


def _fullest(share: Floats, num_ranks: int) -> float:
    """Share of the tokens that the rank with most of them has; the mean of the rows."""
    return float(fullest(share, num_ranks).mean())

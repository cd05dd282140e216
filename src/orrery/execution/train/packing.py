"""Experts and copies in slots, so that ranks get as much to do as each other."""

from functools import lru_cache

import numpy as np

from orrery.execution.train.loads import Floats, Ints, fullest


def packed(share: Floats, num_ranks: int, num_extra: int) -> Ints:
    """The expert of every slot, a row for each of ``share``: in order where packing evens nothing out.

    ``num_extra`` slots beside one for each expert hold copies.
    """
    order = np.argsort(-share, axis=1, kind="stable")
    falling = np.take_along_axis(share, order, axis=1)
    place = np.array([_slots(tuple(row.tolist()), num_ranks, num_extra) for row in falling])
    expert = np.take_along_axis(order, place, axis=1)
    if num_extra:
        return expert
    here = fullest(np.take_along_axis(share, expert, axis=1), num_ranks) < fullest(share, num_ranks) * (1.0 - 1e-12)
    return np.where(here[:, None], expert, np.arange(share.shape[1], dtype=np.int64))


@lru_cache(maxsize=1024)
def _slots(falling: tuple[float, ...], num_ranks: int, num_extra: int) -> tuple[int, ...]:
    """Expert of each slot, rank by rank; experts are numbered by falling share. Extra slots go one by one to the expert
    whose copies have most each; then slots, the fullest first, to the emptiest rank with room that does not have the
    expert yet. [eplb-2025]"""
    share, copies = np.array(falling), np.ones(len(falling))
    slots = list(range(len(falling)))
    for _ in range(num_extra):
        each = np.where(copies < num_ranks, share / copies, -1.0 / copies)  # one on every rank is enough
        slots.append(int(np.argmax(each)))
        copies[slots[-1]] += 1.0
    each = share / copies
    room = len(slots) // num_ranks
    ranks: list[list[int]] = [[] for _ in range(num_ranks)]
    total, has = np.zeros(num_ranks), np.zeros((num_ranks, len(falling)), dtype=np.bool_)
    for expert in sorted(slots, key=lambda e: -each[e]):
        open_to = np.where(has[:, expert], np.inf, total)
        rank = int(np.argmin(open_to if np.isfinite(open_to).any() else total))
        ranks[rank].append(expert)
        has[rank, expert] = True
        total[rank] = np.inf if len(ranks[rank]) == room else total[rank] + each[expert]
    return tuple(expert for rank in ranks for expert in rank)

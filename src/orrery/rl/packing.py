"""Micro-batches from the sequences of an update: packed until full, or padded to the longest.

packed: each data rank sorts its sequences and puts each into the first micro-batch with room (first fit decreasing);
        the rank with most of them decides. Attention stays within a sequence.
padded: every sequence counts as many tokens as the longest of its update.
"""

from dataclasses import dataclass

import numpy as np

from orrery.serving.requests import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Equal micro-batches that stand for those of one update on one data rank."""

    seq_len: int  # tokens of a sequence in it
    micro_batch: int  # sequences in it
    num_micro_batches: int

    @property
    def tokens(self) -> int:
        """Tokens of one data rank in one update."""
        return self.seq_len * self.micro_batch * self.num_micro_batches


def packed(tokens: Ints, dp: int, num_updates: int, room_tokens: int) -> Packed:
    """Sequences of ``tokens`` each, dealt over ``num_updates`` updates and ``dp`` ranks, in micro-batches of a room."""
    bins = 0
    for update in np.array_split(tokens, num_updates):
        bins += max(_first_fit(update[rank::dp], room_tokens) for rank in range(dp))
    num_bins = -(-bins // num_updates)
    together = max(1, round(tokens.size / (num_updates * dp * num_bins)))
    each = float(tokens.sum()) / (num_updates * dp * num_bins * together)
    return Packed(seq_len=max(1, round(each)), micro_batch=together, num_micro_batches=num_bins)


def _first_fit(tokens: Ints, room_tokens: int) -> int:
    """Micro-batches of one rank; a sequence longer than the room has one of its own."""
    left = np.zeros(max(1, tokens.size))
    count = 0
    for length in np.sort(tokens)[::-1].tolist():
        fits = np.flatnonzero(left[:count] >= length)
        place = int(fits[0]) if fits.size else count
        if not fits.size:
            left[count] = max(room_tokens, length)
            count += 1
        left[place] -= length
    return max(1, count)


def padded(tokens: Ints, dp: int, num_updates: int, micro_batch: int) -> Packed:
    """The same with every sequence as long as the longest of all."""
    each = -(-tokens.size // (num_updates * dp))
    together = min(micro_batch, each)
    return Packed(seq_len=int(tokens.max()), micro_batch=together, num_micro_batches=-(-each // together))

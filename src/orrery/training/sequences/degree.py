"""How many ranks a sequence needs: as many as hold its activations, fewer where the host takes some. [bytescale-2025]

Of L tokens on c ranks a device keeps L a / c bytes of activations. What the link to the host moves while the forward
pass computes costs nothing (backward computes longer and brings it back as well hidden). Attention's time grows with
the square of the length and its activations do not, so the longer a sequence, the more of it the host can take:

    c >= (L a - bandwidth F(L)) / kept,   c >= L a / (kept + host),   F = forward seconds on one rank
"""

from math import ceil

from orrery.training.sequences.trainer import Trainer, split_work


def least_degree(trainer: Trainer, tokens: int, forward_attention_s: float, *, offloads: bool = True) -> int:
    """Ranks that hold a sequence."""
    whole_bytes = tokens * trainer.token_bytes
    if not offloads:
        return max(1, ceil(whole_bytes / trainer.kept_bytes))
    forward_s = split_work(trainer, tokens, forward_attention_s, 1).forward_s
    hidden_bytes = trainer.device.host.each_way_bytes_per_s * forward_s
    by_link = ceil((whole_bytes - hidden_bytes) / trainer.kept_bytes)
    by_room = ceil(whole_bytes / (trainer.kept_bytes + trainer.host_bytes))
    return max(1, by_link, by_room)

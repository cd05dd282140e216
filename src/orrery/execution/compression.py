"""Keeping less of the cache: fewer tokens, or fewer bytes of each, and the work of choosing what to keep.

What a method loses in quality is not modelled: the kept shares are inputs. [snapkv-2024], [fu-2024]
"""

from orrery.execution.kept_cache import NOTHING, Compression, kept_tokens
from orrery.execution.layout import Deployment
from orrery.execution.shard import Cache, cache_of


def compressed(cache: Cache, compression: Compression) -> Cache:
    """The cache of a device when tokens keep fewer bytes; recurrent states stay as they are."""
    part = compression.kept_bytes_frac
    return Cache(
        bytes_per_token=cache.bytes_per_token * part,
        windows=tuple((tokens, each * part) for tokens, each in cache.windows),
        bytes_per_sequence=cache.bytes_per_sequence,
    )


def compressing_s(deployment: Deployment, compression: Compression, prompt_tokens: int) -> float:
    """Time after a prompt to choose and to gather what stays: operations at the 16-bit peak, then one read and write.

    Both are shared by the devices that hold the sequence; roofs, not measured kernels.
    """
    device, layout = deployment.cluster.device, deployment.layout
    peak = device.peak_flops_per_s(("bf16", "fp16", "fp32"))[1] * layout.tp * layout.cp
    retained = kept_tokens(compression, prompt_tokens)
    moved = 0.0
    if retained < prompt_tokens or compression.kept_bytes_frac < 1.0:
        cache = cache_of(deployment)
        moved = cache.sequence_bytes(retained) + compressed(cache, compression).sequence_bytes(retained)
    if compression.budget_tokens and retained >= prompt_tokens:
        return moved / device.memory_bandwidth_bytes_per_s  # nothing has to be chosen
    moved += compression.score_bytes_per_token * prompt_tokens / (layout.tp * layout.cp)
    return compression.flops_per_token * prompt_tokens / peak + moved / device.memory_bandwidth_bytes_per_s


__all__ = ["NOTHING", "Compression", "compressed", "compressing_s", "kept_tokens"]

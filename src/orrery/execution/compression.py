"""Keeping less of the cache: fewer tokens, or fewer bytes of each, and the work of choosing what to keep.

What a method loses in quality is not modelled: the kept shares are inputs. [snapkv-2024], [fu-2024]
"""

from dataclasses import dataclass
from math import ceil

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.shard import Cache, cache_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """What is kept of a prompt once it has been read.

    ``kept_tokens_frac`` of its tokens, at most ``budget_tokens`` of them (0: no limit) and at least ``window_tokens``;
    ``kept_bytes_frac`` of the bytes of each token (fewer layers, heads or bits beside the deployment's own format), of
    later ones too. Choosing takes ``flops_per_token`` for every token of the prompt, on the whole model.
    """

    kept_tokens_frac: float = 1.0
    budget_tokens: int = 0
    window_tokens: int = 0
    kept_bytes_frac: float = 1.0
    flops_per_token: float = 0.0

    def __post_init__(self) -> None:
        for name in ("kept_tokens_frac", "kept_bytes_frac"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ScenarioError(f"{name} = {getattr(self, name):g} in Compression; write above 0, up to 1.")
        for name in ("budget_tokens", "window_tokens", "flops_per_token"):
            if getattr(self, name) < 0:
                raise ScenarioError(f"{name} = {getattr(self, name):g} in Compression; write 0 or more.")


NOTHING = Compression()
"""Keeps everything."""


def kept_tokens(compression: Compression, prompt_tokens: int, output_tokens: int = 0) -> int:
    """Cached tokens of a sequence, which are also those that it attends to: what is kept of the prompt, and its output.

    The prompt itself attends to all of its tokens: it is read in full before anything is dropped.
    """
    retained = ceil(compression.kept_tokens_frac * prompt_tokens)
    if compression.budget_tokens:
        retained = min(retained, compression.budget_tokens)
    return min(prompt_tokens, max(retained, compression.window_tokens)) + output_tokens


def compressed(cache: Cache, compression: Compression) -> Cache:
    """The cache of a device when tokens keep fewer bytes; recurrent states stay as they are."""
    part = compression.kept_bytes_frac
    return Cache(
        bytes_per_token=cache.bytes_per_token * part,
        windows=tuple((tokens, each * part) for tokens, each in cache.windows),
        bytes_per_sequence=cache.bytes_per_sequence,
    )  # fmt: skip


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
    return compression.flops_per_token * prompt_tokens / peak + moved / device.memory_bandwidth_bytes_per_s

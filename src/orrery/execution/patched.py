"""A picture in patches: the first passes, which wait for all patches of every layer, and the later ones.

    later pass = max(kernels, exchange)        the exchange runs beside the kernels of the next step
    first pass = kernels with all patches + exchange of every layer

What attention reads is put together in one tensor before it, read and written once.
"""

from dataclasses import dataclass, replace
from math import ceil

from orrery.execution.diffusion import WORD_BYTES, Job, Work, pass_work
from orrery.execution.patches import PATCHES, Exchanged, Shared
from orrery.models.diffusion import attentions

JOIN_PASSES = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchedWork:
    """One pass of each kind, how many there are of the first, and what a later one exchanges."""

    first: Work
    later: Work
    num_first: int
    exchanged: Exchanged
    cache_bytes: float  # keys and values of one patch, all layers

    @property
    def kept_bytes(self) -> float:
        """Keys and values that a device holds."""
        return self.exchanged.kept_ratio * self.cache_bytes


def shared_of(job: Job) -> Shared:
    """Data that one patch shares with the others."""
    b, model = job.num_sequences, job.model
    cache, attending = 0.0, 0
    for block in model.blocks:
        tokens = job.own_tokens(block.shrink)
        for queries, keys, count in attentions(block, tokens * job.patches, model.num_text_tokens):
            if queries == keys:
                cache += 2.0 * b * tokens * block.width * count * WORD_BYTES
                attending += count
    _, columns, frames = model.token_grid(job.height, job.width, job.num_frames)
    spatial = [c for c in model.convolutions if c.kernel > 1]
    border = sum(
        2.0 * (c.kernel // 2) * ceil(columns / c.shrink) * frames * c.num_inputs * b * WORD_BYTES for c in spatial
    )
    return Shared(
        device=job.device,
        num_devices=job.patches,
        cache_bytes=cache,
        border_bytes=border,
        num_attentions=attending,
        num_convolutions=len(spatial),
    )


def patched_work(job: Job) -> PatchedWork:
    """All passes of one device of a job in patches."""
    shared, technique = shared_of(job), PATCHES.get(job.patch_context)
    read = {"read_frac": job.patch_read_frac} if job.patch_context == "neighbour" else {}
    exchanged: Exchanged = technique.rule(shared, technique.knobs(**read))
    layers = shared.num_attentions + shared.num_convolutions
    first = pass_work(job, job.patches)
    later = pass_work(job, exchanged.read_ratio)
    joined = JOIN_PASSES * shared.cache_bytes
    passes_a_step = job.num_passes // job.num_inference_steps
    return PatchedWork(
        first=replace(
            first,
            stream_bytes=first.stream_bytes + joined * job.patches,
            exchange_s=shared.gathering_s(shared.cache_bytes + shared.border_bytes, layers),
            num_exchanges=layers,
        ),
        later=replace(
            later,
            stream_bytes=later.stream_bytes + joined * exchanged.read_ratio,
            beside_s=exchanged.exchange_s,
            num_exchanges=exchanged.num_calls,
        ),
        num_first=min(job.patch_warmup_steps + 1, job.num_inference_steps) * passes_a_step,
        exchanged=exchanged,
        cache_bytes=shared.cache_bytes,
    )

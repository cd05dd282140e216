"""One batch of pictures or videos from prompt to pixels: time, stages, memory, power and energy.

    latency = prompts + passes x pass + pixels
    power   = idle + busy (law of the device's power at the rates while it is busy - idle)

Every device of the batch denoises; only one decodes, while the others wait.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from orrery.base.cost import Spread
from orrery.execution.diffusion import FORMAT, WORD_BYTES, Job, Seconds, Work, decoder_work, encoder_work, pass_work
from orrery.execution.diffusion import seconds as seconds_of
from orrery.execution.patched import patched_work
from orrery.hardware.calibration import Calibration
from orrery.hardware.device import Device
from orrery.kernels import energy
from orrery.kernels.resolve import find

RUNTIME, ENERGY = "diffusion", "diffusion_energy"
"""Names of the time constants, and of the spread of joules, among the fitted ones."""

CAUSES = {
    "products_s": "products",
    "attention_s": "attention",
    "stream_s": "element-wise operators",
    "exchange_s": "network",
    "convolution_s": "convolutions",
}

ACTIVATION_WIDTHS, PIXEL_COPIES = 8.0, 4.0
"""Tensors as wide as the model, and as the decoder's last level, that are alive at once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """A part of the run: what it takes, what binds it, and by cause."""

    name: str
    time_s: float
    bound_by: str
    parts: Seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Generated:
    """A whole batch."""

    stages: tuple[Stage, ...]
    latency_s: float
    power_w: float  # mean, of all devices
    energy_j: float  # of the batch
    weight_bytes: float  # of one device
    activation_bytes: float
    flops: float  # of a device

    @property
    def bound_by(self) -> str:
        """The limit of the longest stage."""
        return max(self.stages, key=lambda s: s.time_s).bound_by


def constants_of(device: Device) -> Calibration:
    """The fitted constants of the eager runtime: one set for every device."""
    return find(device, RUNTIME, FORMAT)


def energy_spread(device: Device) -> Spread:
    """The relative error of joules, on models that had no part in any fit."""
    return find(device, ENERGY, FORMAT).spread


@lru_cache(maxsize=4096)
def generate(job: Job) -> Generated:
    """The batch by the shipped constants."""
    constants = constants_of(job.device).constants
    passes = ((name, _replayed(work) if job.has_graphs else work, count) for name, work, count in _passes(job))
    works = (("prompt", encoder_work(job), 1), *passes, ("decode", decoder_work(job), 1))
    stages: list[Stage] = []
    matrix_s = memory_s = busy_s = flops = 0.0
    for name, work, count in works:
        parts = seconds_of(work, job.device, constants)
        stages.append(Stage(name=name, time_s=float(parts.time_s) * count, bound_by=bound_by(parts), parts=parts))
        busy = count / (job.num_devices if name == "decode" else 1)
        done = work.product_flops + work.plain_flops + work.convolution_flops
        more = energy.weighted_s(job.device, FORMAT, done, work.stream_bytes)
        matrix_s, memory_s = matrix_s + busy * float(more[0]), memory_s + busy * float(more[1])
        busy_s, flops = busy_s + busy * float(parts.device_s), flops + busy * float(done)
    latency_s = sum(stage.time_s for stage in stages)
    power_w = job.num_devices * mean_power_w(job.device, matrix_s, memory_s, busy_s, latency_s)
    weights, activations = memory_bytes(job)
    return Generated(
        stages=tuple(stages),
        latency_s=latency_s,
        power_w=power_w,
        energy_j=power_w * latency_s,
        weight_bytes=weights,
        activation_bytes=activations,
        flops=flops,
    )


def _passes(job: Job) -> Iterator[tuple[str, Work, int]]:
    """The passes of the denoiser; in patches, the first ones wait for each other."""
    if job.patches == 1:
        yield "denoise", pass_work(job), job.num_passes
        return
    work = patched_work(job)
    yield "denoise, waiting", work.first, work.num_first
    if later := job.num_passes - work.num_first:
        yield "denoise", work.later, later


def _replayed(work: Work) -> Work:
    """A pass that one graph holds, without the host's part."""
    return replace(work, num_operators=0.0, num_exchanges=0.0, num_hops=0.0)


def mean_power_w(device: Device, matrix_s: float, memory_s: float, busy_s: float, wall_s: float) -> float:
    """Idle while the device waits, and the law of its power at the rates that it has while it does not."""
    law = energy.step_law(device)
    busy = min(busy_s, wall_s)
    return law.idle_w + (law.power_w(matrix_s, memory_s, busy) - law.idle_w) * busy / wall_s


def bound_by(parts: Seconds) -> str:
    """The host where it is slower than the device, else the device's largest cause."""
    if parts.host_s > parts.device_s:
        return "host"
    return CAUSES[max(CAUSES, key=lambda name: float(getattr(parts, name)))]


def memory_bytes(job: Job) -> tuple[float, float]:
    """(weights, most of the activations) of one device, in 16 bits: all networks stay loaded.

    Activations are those of a pass, or of a picture (or tile of a video) while it is decoded, whichever are more.
    """
    model = job.model
    encoders = sum(e.num_parameters for e in model.encoders)
    weights = (model.transformer_weights + model.decoder_weights + encoders) * WORD_BYTES
    widest = max((b.width * ACTIVATION_WIDTHS + b.ffn_size) / b.shrink**2 for b in model.blocks)
    widest = max(widest, *(ACTIVATION_WIDTHS * c.num_outputs / c.shrink**2 for c in model.convolutions), 0.0)
    tokens = model.num_tokens(job.height, job.width, job.num_frames) / job.num_devices + model.num_text_tokens
    denoising = job.num_sequences * tokens * widest * WORD_BYTES
    denoising += patched_work(job).kept_bytes if job.patches > 1 else 0.0
    tile = model.decoder.tile**2 if model.decoder.tile else job.height * job.width
    pixels = min(tile, job.height * job.width) * job.num_frames * (1 if model.decoder.tile else job.batch)
    decoding = PIXEL_COPIES * pixels * model.decoder.levels[-1].width * WORD_BYTES
    shown = 3.0 * job.height * job.width * job.num_frames * job.batch * 4.0
    return weights, max(denoising, decoding + shown)


__all__ = ["Generated", "Job", "Stage", "Work", "constants_of", "energy_spread", "generate"]

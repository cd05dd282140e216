"""A batch of pictures or videos as a person reads it in a terminal."""

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.execution.diffusion import Job
from orrery.scenario.diffusion import DiffusionAnswer
from orrery.scenario.patches import PatchGain


def print_diffusion(answer: DiffusionAnswer) -> None:
    """Numbers with their intervals, stages, memory, and what limits it."""
    out, job, g = console(), answer.job, answer.generated
    item = "video" if job.model.is_video else "picture"
    frames = f" x {job.num_frames} frames" if job.model.is_video else ""
    out.print(
        f"[bold]{job.model.name}[/] on {job.num_devices} x {job.device.name} ({_degrees(job)}): "
        f"{job.batch} x {job.height} x {job.width}{frames}, {job.num_inference_steps} steps",
        highlight=False,
    )
    intervals = answer.intervals()
    table = Sheet("", "mean", "80 % interval")

    def add(label: str, value: float, name: str, unit: str) -> None:
        found = intervals.get(name)
        table.add_row(
            label, text(value, unit), f"{text(found.low_80, unit)} to {text(found.high_80, unit)}" if found else ""
        )

    add("batch latency", g.latency_s, "latency_s", "s")
    for stage in g.stages:
        table.add_row(f"  {stage.name}", text(stage.time_s, "s"), f"bound by {stage.bound_by}")
    add("power of all devices", g.power_w, "power_w", "w")
    add(f"energy of a {item}", answer.energy_j_per_item, "energy_j_per_item", "j")
    table.add_row(f"{item}s a second", figures(answer.items_per_s), "")
    if (usd := answer.usd_per_item) is not None:
        table.add_row(f"a thousand {item}s", f"${figures(1e3 * usd)}", "")
    if (usd := answer.usd_per_video_s) is not None:
        table.add_row("a second of video", f"${figures(usd)}", "")
    out.print(table)
    if job.patches > 1:
        _print_patches(PatchGain(job=job, many=g))
    free = job.device.memory_capacity_bytes - g.weight_bytes - g.activation_bytes
    out.print(
        f"Limited by {g.bound_by}. Memory of a device: weights {text(g.weight_bytes, 'bytes')}, activations "
        f"{text(g.activation_bytes, 'bytes')}, {text(free, 'bytes')} left."
    )


def _degrees(job: Job) -> str:
    return f"{job.patches} patches" if job.patches > 1 else f"ulysses {job.ulysses}, ring {job.ring}"


def _print_patches(gain: PatchGain) -> None:
    """Print what is exchanged, what is left out, and the share of the gain from each."""
    work, left_out = gain.work, gain.attention_left_out_frac
    why = f", as {percent(left_out)} of one device's passes, attention to far patches, is left out" if left_out else ""
    console().print(
        f"Against one device: {gain.speedup:.2f} times faster, its passes {gain.denoise_speedup:.2f} times (at most "
        f"{gain.most_denoise_speedup:.2f}{why}). A pass receives {text(work.exchanged.received_bytes, 'bytes')} beside "
        f"the kernels, in {text(work.exchanged.exchange_s, 's')}; {work.num_first} passes wait for it.",
        highlight=False,
    )

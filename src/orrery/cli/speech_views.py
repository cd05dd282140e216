"""Transcribed recordings as a person reads them in a terminal."""

from orrery.base.cost import Interval
from orrery.base.units import figures, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.speech import SpeechAnswer


def print_speech(answer: SpeechAnswer) -> None:
    """Latency by stage, how much faster than real time, power and money."""
    out, intervals = console(), answer.intervals()
    count, beams = answer.num_windows, answer.windows.beams
    out.print(
        f"[bold]{answer.model.name}[/] on {answer.device.name} by {answer.runtime.title or answer.runtime.name}: "
        f"{answer.batch} x {text(answer.audio_s, 's')} of speech, {count} window{'s' if count > 1 else ''} "
        f"({answer.window_batch} at once) of {answer.output_tokens:.0f} tokens, {beams} beam{'s' if beams > 1 else ''}",
        highlight=False,
    )
    table = Sheet("", "mean", "80 % interval", "bound by")
    latency, rate = (intervals.get(name) for name in ("latency_s", "audio_s_per_s"))
    table.add_row("latency", text(answer.latency_s, "s"), _between(latency), "")
    table.add_row("  sound made ready", text(answer.preparation_s, "s"), "", "host")
    for stage in answer.transcribed.stages:
        table.add_row(f"  {stage.name}", text(answer.num_rounds * stage.time_s, "s"), "", stage.bound_by)
    table.add_row("speech a second", text(answer.audio_s_per_s, "s"), _between(rate), "")
    table.add_row("power", text(answer.power_w, "w"), "", "")
    table.add_row("energy of an hour of speech", text(answer.energy_j_per_audio_hour, "j"), "", "")
    if (usd := answer.usd_per_audio_hour) is not None:
        table.add_row("an hour of speech", f"${figures(usd)}", "", "")
    out.print(table)
    used = answer.weight_bytes + answer.cache_bytes + answer.activation_bytes
    out.print(f"Memory: {text(used, 'bytes')} of {text(answer.device.memory_capacity_bytes, 'bytes')}.")


def _between(interval: Interval | None) -> str:
    return f"{text(interval.low_80, 's')} to {text(interval.high_80, 's')}" if interval else ""

"""Transcribed recordings as a person reads them in a terminal."""

from orrery.base.units import figures, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.speech import SpeechAnswer


def print_speech(answer: SpeechAnswer) -> None:
    """Latency by stage, how much faster than real time, power and money."""
    out, done = console(), answer.transcribed
    out.print(
        f"[bold]{answer.model.name}[/] on {answer.device.name}: {answer.batch} x {text(answer.audio_s, 's')} of "
        f"speech, {answer.num_windows} window{'s' if answer.num_windows > 1 else ''} of {answer.output_tokens} tokens",
        highlight=False,
    )
    table = Sheet("", "mean", "bound by")
    table.add_row("latency", text(answer.latency_s, "s"), "")
    for stage in done.stages:
        table.add_row(f"  {stage.name}", text(answer.num_windows * stage.time_s, "s"), stage.bound_by)
    table.add_row("speech a second", text(answer.audio_s_per_s, "s"), "")
    table.add_row("power", text(done.power_w, "w"), "")
    table.add_row("energy of an hour of speech", text(answer.energy_j_per_audio_hour, "j"), "")
    if (usd := answer.usd_per_audio_hour) is not None:
        table.add_row("an hour of speech", f"${figures(usd)}", "")
    out.print(table)
    used = answer.weight_bytes + answer.cache_bytes + answer.activation_bytes
    out.print(f"Memory: {text(used, 'bytes')} of {text(answer.device.memory_capacity_bytes, 'bytes')}.")

"""A window of weights, as a person reads it in a terminal."""

from orrery.base.units import text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.weight_window import WeightWindowAnswer


def print_weight_window(answer: WeightWindowAnswer) -> None:
    """Every length of the window, and the two ways of adding parts."""
    out = console()
    out.print(f"[bold]{answer.model}[/] over {answer.num_devices} x {answer.device}, weights in a window")
    sheet = Sheet("window", "TTFT", "TPOT", "peak memory")
    for one in answer.windows:
        mark = " (yours)" if one == answer.window else ""
        times = text(one.ttft_s, "s"), text(one.tpot_s, "s"), text(one.peak_bytes, "bytes")
        sheet.add_row(f"{one.num_blocks}{mark}", *times)
    out.print(sheet)
    ways = ", ".join(f"{name} {text(seconds, 's')}" for name, seconds in answer.exchange_s.items())
    room = "fits" if answer.has_room else "does not fit"
    out.print(f"It {room} the memory of one machine. Adding the parts of a block for a token: {ways}.")

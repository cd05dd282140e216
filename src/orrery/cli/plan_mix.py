"""``orrery plan --mix``: which devices to rent together for requests of many sizes."""

from math import isfinite
from typing import TYPE_CHECKING

from orrery.base.units import figures, percent
from orrery.cli.output import console, print_infeasible, print_json, print_notes
from orrery.cli.sheet import Sheet
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.mix import MixAnswer, plan_mix

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario

S_PER_HOUR = 3600.0


def run_mix(scenario: "Scenario", is_json: bool) -> int:
    """Search, print; the exit code."""
    answer = plan_mix(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_mix(answer)
    print_notes(answer.notes)
    return 0


def print_mix(answer: MixAnswer) -> None:
    """The replicas of each type with the sizes they take, and each device alone."""
    out, rented = console(), [i for i, n in enumerate(answer.mix.num_replicas) if n]
    usd = figures(answer.mix.usd_per_s * S_PER_HOUR, 4)
    out.print(f"[bold]{figures(answer.requests_per_s, 4)} requests/s[/] cost ${usd} an hour on the cheapest mix:")
    table = Sheet("device", "tp", "replicas", "$/h each", title="Replicas")
    for i in rented:
        t = answer.types[i]
        table.add_row(t.device, str(t.tp), str(answer.mix.num_replicas[i]), figures(t.usd_per_s * S_PER_HOUR))
    out.print(table)
    names = [f"{answer.types[i].device} tp{answer.types[i].tp}" for i in rented]
    dealt = Sheet("input", "output", "requests", *names, title="Sizes, and where they go", left=0)
    for size, share in zip(answer.sizes, answer.mix.dealt_frac, strict=True):
        parts = [percent(share[i]) if share[i] > 1e-6 else "" for i in rented]
        dealt.add_row(f"{size.input_tokens:.0f}", f"{size.output_tokens:.0f}", percent(size.share_frac, 1), *parts)
    out.print(dealt)
    alone = Sheet("device alone", "$/h", "the mix saves")
    for name, usd_per_s in answer.alone_usd_per_s.items():
        can = isfinite(usd_per_s)
        rent = figures(usd_per_s * S_PER_HOUR, 4) if can else "too slow or too small for some size"
        alone.add_row(name, rent, percent(answer.saving_frac[name], 1) if can else "")
    out.print(alone)

"""Replicas under a power budget, as a person reads them."""

from orrery.base.units import percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.power_row import PowerRow, RowFit


def print_power_row(row: PowerRow) -> None:
    """Every rule at the usual busy share, and one of them over busy shares."""
    out = console()
    out.print(f"{text(row.power_budget_w, 'w')} hold {row.caps[0].fit.num_rated} replicas of {text(row.rated_w, 'w')}.")
    for title, fits in (("Replicas by rule", row.caps), (f"Replicas with {row.curve[0].cap}", row.curve)):
        table = Sheet("rule", "busy at the peak", "replicas", "more", "mean draw", "peak draw", title=title)
        for fit in fits:
            table.add_row(*_cells(fit))
        out.print(table)


def _cells(fit: RowFit) -> tuple[str, ...]:
    found = fit.to_json()
    shares = (percent(found[name]) for name in ("more_frac", "mean_drawn_frac", "peak_drawn_frac"))
    return fit.cap, percent(fit.busy_frac), str(fit.fit.num_servers), *shares

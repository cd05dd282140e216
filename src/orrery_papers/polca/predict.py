"""POLCA: a row of servers under one breaker, and how many more of them fit when clocks are lowered by priority."""

from collections.abc import Callable, Iterator
from functools import cache

from orrery.base.errors import OutOfRange
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.memory import Infeasible
from orrery.fleet.power.oversubscribe import Fit, Tolerance, largest_row
from orrery.fleet.power.phases import Phases, phases
from orrery.fleet.power.registry import get_capping
from orrery.fleet.power.row import Row
from orrery_papers.shared.setup import deployment

MAX_FRAC = 1.5
"""More servers are never looked for."""

TICK_S = 1.0

DIFFERS = (
    "the load, its swing over the day, batches and objectives are assumed: a row whose servers are less busy, or more "
    "often at prompts, fits more or fewer"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Servers beyond those that rated draws allow, with two thresholds; and with one for all."""
    claims = {claim.id: claim for claim in paper.claims}
    ours = fit(claims["more-servers"].setup, "cap-two-thresholds")
    limit_w = rated_w(claims["more-servers"].setup)
    plain = fit(claims["more-servers"].setup, "cap-everyone")
    yield Prediction(
        claim="more-servers", predicted=ours.more_frac, differs=DIFFERS,
        because=f"{ours.num_servers} servers, not {ours.num_rated}: {ours.drawn.drawn_w.mean() / limit_w:.2f} "
        f"of the limit in the mean and {ours.drawn.drawn_w.max() / limit_w:.2f} at most; with one threshold for all "
        f"{plain.num_servers}",
    )  # fmt: skip


def rated_w(setup: Setup) -> float:
    """The breaker's limit."""
    return setup.number("num_servers") * setup.number("server_w")


def fit(setup: Setup, name: str) -> Fit:
    """The largest row under that rule."""
    technique = get_capping(name)
    given = {"first_frac": setup.number("first_threshold_frac"), "second_frac": setup.number("second_threshold_frac")}
    if name == "cap-everyone":
        given = {"threshold_frac": setup.number("second_threshold_frac")}
    knobs = technique.knobs(**given)
    row = Row(
        num_servers=int(setup.number("num_servers")), limit_w=rated_w(setup), busy_frac=setup.number("busy_frac"),
        peak_to_trough_ratio=setup.number("peak_to_trough_ratio"), tick_s=TICK_S, run_s=setup.number("run_s"),
        low_priority_frac=setup.number("low_priority_frac"), reading_s=setup.number("reading_s"),
        delay_s=setup.number("cap_delay_s"),
    )  # fmt: skip
    tolerance = Tolerance(
        low_p50_frac=setup.number("low_p50_late_frac"), low_p99_frac=setup.number("low_p99_late_frac"),
        high_p50_frac=setup.number("high_p50_late_frac"), high_p99_frac=setup.number("high_p99_late_frac"),
    )  # fmt: skip
    return largest_row(row, server(setup), lambda reading: technique.rule(reading, knobs), tolerance, MAX_FRAC)


def server(setup: Setup) -> Callable[[float], Phases]:
    """What one server does and draws at each clock."""
    whole = deployment(setup)

    @cache
    def at_clock(clock_ratio: float) -> Phases:
        found = phases(
            whole, setup.number("num_batch"), setup.number("input_tokens"), setup.number("output_tokens"),
            setup.number("host_w"), clock_ratio,
        )  # fmt: skip
        if isinstance(found, Infeasible):
            raise OutOfRange(f"{found.what}: needs {found.need:g}, has {found.have:g} {found.unit}.")
        return found

    return at_clock

"""POLCA: a row of servers under one breaker, and how many more of them fit when clocks are lowered by priority."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.power.oversubscribe import Fit, Tolerance
from orrery.fleet.power.row import Row
from orrery.scenario.power_row import Batch, row_fit
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
    ours = fit(claims["more-servers"].setup, "two-thresholds")
    limit_w = rated_w(claims["more-servers"].setup)
    plain = fit(claims["more-servers"].setup, "everyone")
    yield Prediction(
        claim="more-servers",
        predicted=ours.more_frac,
        differs=DIFFERS,
        because=f"{ours.num_servers} servers, not {ours.num_rated}: {ours.drawn.drawn_w.mean() / limit_w:.2f} "
        f"of the limit in the mean and {ours.drawn.drawn_w.max() / limit_w:.2f} at most; with one threshold for all "
        f"{plain.num_servers}",
    )


def rated_w(setup: Setup) -> float:
    """The breaker's limit."""
    return setup.number("num_servers") * setup.number("server_w")


def fit(setup: Setup, name: str) -> Fit:
    """The largest row under that rule."""
    given = {"first_frac": setup.number("first_threshold_frac"), "second_frac": setup.number("second_threshold_frac")}
    if name == "everyone":
        given = {"threshold_frac": setup.number("second_threshold_frac")}
    row = Row(
        num_servers=int(setup.number("num_servers")),
        limit_w=rated_w(setup),
        busy_frac=setup.number("busy_frac"),
        peak_to_trough_ratio=setup.number("peak_to_trough_ratio"),
        tick_s=TICK_S,
        run_s=setup.number("run_s"),
        low_priority_frac=setup.number("low_priority_frac"),
        reading_s=setup.number("reading_s"),
        delay_s=setup.number("cap_delay_s"),
    )
    tolerance = Tolerance(
        low_p50_frac=setup.number("low_p50_late_frac"),
        low_p99_frac=setup.number("low_p99_late_frac"),
        high_p50_frac=setup.number("high_p50_late_frac"),
        high_p99_frac=setup.number("high_p99_late_frac"),
    )
    batch = Batch(
        sequences_ratio=setup.number("num_batch"),
        input_tokens=setup.number("input_tokens"),
        output_tokens=setup.number("output_tokens"),
        host_w=setup.number("host_w"),
    )
    return row_fit(deployment(setup), batch, row, name, tolerance, given, MAX_FRAC).fit

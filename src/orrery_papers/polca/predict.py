"""POLCA: a row of servers under one breaker, and how many more of them fit when clocks are lowered by priority."""

from collections.abc import Iterator
from typing import Any

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.service.rate_curve import DAY_S
from orrery.scenario.fleet.answer import FleetAnswer
from orrery.scenario.fleet.ask import simulate_fleet
from orrery.scenario.fleet.oversubscribe import Oversubscription, RuleFit
from orrery_papers.shared.setup import layout_of

DIFFERS = (
    "how busy servers are, their batches, their host's draw and the objectives are assumed: a row whose servers are "
    "less busy, or draw less around their devices, fits more"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Servers beyond those that rated draws allow, with two thresholds; and against one threshold for all."""
    claims = {claim.id: claim for claim in paper.claims}
    ours, plain = fits(claims["more-servers"].setup)
    drawn = ours.to_json()
    yield Prediction(
        claim="more-servers",
        predicted=ours.fit.more_frac,
        differs=DIFFERS,
        because=f"{ours.fit.num_servers} servers, not {ours.fit.num_rated}: {drawn['mean_drawn_frac']:.2f} of the "
        f"limit in the mean and {drawn['peak_drawn_frac']:.2f} at most; with one threshold for all "
        f"{plain.fit.num_servers}",
    )
    yield Prediction(
        claim="over-everyone",
        predicted=ours.fit.num_servers / plain.fit.num_servers,
        because=f"{ours.fit.num_servers} servers, not {plain.fit.num_servers}",
    )


def fits(setup: Setup) -> tuple[RuleFit, RuleFit]:
    """``orrery fleet --oversubscribe`` on the set-up: two thresholds, and one for all."""
    answer = simulate_fleet(**fleet_settings(setup))
    if not isinstance(answer, Oversubscription):
        raise OutOfRange(f"setup {setup.name}: {answer}")
    found = {fit.cap: fit for fit in answer.fits}
    return found["two-thresholds"], found["everyone"]


def fleet_settings(setup: Setup) -> dict[str, Any]:
    """The fleet's settings: its busiest stretch, each server with requests of its own."""
    count, device = layout_of(setup.word("layout")).tp, get_device(setup.word("device"))
    servers = int(setup.number("num_servers"))
    server: dict[str, Any] = {
        "model": setup.word("model"),
        "device": device.name,
        "tp": count,
        "max_num_seqs": int(setup.number("num_batch")),
        "input_tokens": setup.number("input_tokens"),
        "output_tokens": setup.number("output_tokens"),
        "max_model_len": int(setup.number("input_tokens") + setup.number("output_tokens")),
        "host_power_w": setup.number("host_w") / count,
        "days": setup.number("run_s") / DAY_S,
    }
    alone = simulate_fleet(**server, rate=1.0, replicas=1, change=False)
    if not isinstance(alone, FleetAnswer):
        raise OutOfRange(f"setup {setup.name}: {alone}")
    busy = setup.number("busy_frac") * alone.run.setup.capacity_requests_per_s
    late = {"low_p50": "low_p50_late_frac", "low_p99": "low_p99_late_frac"}
    late |= {"high_p50": "high_p50_late_frac", "high_p99": "high_p99_late_frac"}
    return {
        **server,
        "rate": busy * servers,
        "replicas": servers,
        "router": "round-robin",
        "oversubscribe": True,
        "power_budget_w": servers * count * (device.power_limit_w + device.host_power_w),
        "power_cap": "two-thresholds",
        "power_cap_knob": [f"{name}_frac={setup.number(f'{name}_threshold_frac'):g}" for name in ("first", "second")],
        "power_low_frac": setup.number("low_priority_frac"),
        "power_reading_s": setup.number("reading_s"),
        "power_delay_s": setup.number("cap_delay_s"),
        "power_late": [f"{name}={setup.number(key):g}" for name, key in late.items()],
    }

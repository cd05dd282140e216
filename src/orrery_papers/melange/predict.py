"""Mélange: the cheapest mix of four types of devices for three kinds of traffic, against each type alone."""

import math
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import FactError
from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.mix import plan_mix
from orrery.scenario.schema import read_scenario
from orrery.serving.synthesis.clipped import lognormal_centre
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.setup import Lognormal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_TOKENS = 8000.0
"""No request is longer, on either side."""

MOST = (
    "which single type is worst depends on how few requests of a size the largest device is rented for, so on the "
    "lowest rate of the plots and on rents; both are assumed"
)
LEAST = (
    "at some rate a single type is as good as any mix here, because a load that happens to fill its devices leaves "
    "nothing to gain; the paper's rates and prices, and the room that it keeps for bursts, were not at hand"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """The largest and the smallest saving over the rates and single types of each kind of traffic."""
    of: dict[str, Floats] = {}
    for claim in paper.claims:
        if (name := claim.setup.name) not in of:
            of[name] = savings(claim.setup)
        found = of[name]
        is_most = claim.metric == "cost_reduction"
        value = float(np.nanmax(found) if is_most else np.nanmin(found))
        yield Prediction(
            claim=claim.id,
            predicted=value,
            differs=MOST if is_most else LEAST,
            because=f"{np.isfinite(found).sum()} pairs of a rate and a type that can serve it alone: "
            f"{np.nanmin(found):.2f} to {np.nanmax(found):.2f}",
        )


def savings(setup: Setup) -> Floats:
    """Part of the rent that a mix saves (rates x single types); nan where the type alone cannot serve it."""
    devices, single = words(setup.word("devices")), words(setup.word("single_devices"))
    rents = dict(zip(devices, setup.numbers("rents_swept"), strict=True))
    scenario = read_scenario(
        {
            "model": setup.word("model"),
            "device": ",".join(devices),
            "tp": 1,
            "engine": "vllm",
            "engine_version": "0",
            "slo": [f"tpot:{setup.number('slo_fleet_tpot_s') * 1e3:g}"],
        }
    )
    rows = list[list[float]]()
    for rate in setup.numbers("fleet_rates_swept"):
        found = plan_mix(scenario, lengths=lengths(_key(setup)), rents_usd_per_hour=rents, rate=rate)
        if isinstance(found, InfeasibleAnswer):
            raise FactError(f"setup {setup.name}: {found.infeasible}")
        rows.append([found.saving_frac.get(name, math.nan) for name in single])
    return np.array(rows)


Key = tuple[tuple[tuple[float, float, float], ...], int]


def _key(setup: Setup) -> Key:
    """Kinds of traffic (mean prompt, mean answer, share) and requests: all that the lengths depend on."""
    long = setup.number("long_frac")
    short = (setup.number("input_mean_tokens"), setup.number("output_mean_tokens"), 1.0 - long)
    other = (setup.number("input_long_tokens"), setup.number("output_long_tokens"), long)
    return (short, other)[: 1 + (long > 0.0)], int(setup.number("num_requests"))


@cache
def lengths(key: Key) -> tuple[Ints, Ints]:
    """Prompts and answers, drawn from each kind's lognormal lengths."""
    traffic, count = key
    draws = stream(0, "melange/lengths")
    inputs, outputs = (
        np.concatenate([length(kind[side]).draw(round(kind[2] * count), draws) for kind in traffic]) for side in (0, 1)
    )
    return inputs, outputs


def length(mean_tokens: float) -> Lognormal:
    """Lognormal lengths of that mean, spread by a factor e."""
    return Lognormal(mu=lognormal_centre(mean_tokens, 1.0, MAX_TOKENS), sigma=1.0, most_tokens=MAX_TOKENS)

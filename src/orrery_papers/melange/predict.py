"""Mélange: the cheapest mix of four types of devices for three kinds of traffic, against each type alone."""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import FactError
from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.fleet.mix import Bucket, ReplicaRates, alone, buckets, cheapest, pace
from orrery.serving.synthesis.clipped import lognormal_centre
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.setup import Lognormal, deployment

Floats = NDArray[np.float64]

EDGES = (64.0, 256.0, 1024.0, 4096.0)
"""Between kinds of request, for prompts and answers alike."""

MAX_TOKENS = 8000.0
"""No request is longer, on either side."""

S_PER_HOUR = 3600.0

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
            claim=claim.id, predicted=value, differs=MOST if is_most else LEAST,
            because=f"{np.isfinite(found).sum()} pairs of a rate and a type that can serve it alone: "
            f"{np.nanmin(found):.2f} to {np.nanmax(found):.2f}",
        )  # fmt: skip


def savings(setup: Setup) -> Floats:
    """Part of the rent that a mix saves (rates x single types); nan where the type alone cannot serve it."""
    kinds, paces = profile(_key(setup))
    names, usd_per_s = words(setup.word("devices")), np.array(setup.numbers("rents_swept")) / S_PER_HOUR
    single = [names.index(name) for name in words(setup.word("single_devices"))]
    capacity = np.array([[p.highest_per_s(setup.number("slo_fleet_tpot_s")) for p in row] for row in paces]).T
    shares = np.array([kind.share_frac for kind in kinds])
    rows = list[Floats]()
    for rate in setup.numbers("fleet_rates_swept"):
        with np.errstate(divide="ignore"):
            loads = shares[:, None] * rate / capacity
        mix = cheapest(loads, usd_per_s)
        if mix is None:
            raise FactError(f"setup {setup.name}: no device is fast enough for some request.")
        rent = alone(loads, usd_per_s)[single]
        rows.append(np.where(np.isfinite(rent), 1.0 - mix.usd_per_s / rent, np.nan))
    return np.array(rows)


Key = tuple[str, str, tuple[tuple[float, float, float], ...], int]


def _key(setup: Setup) -> Key:
    """Model, devices, kinds of traffic (mean prompt, mean answer, share), requests: all that the profile depends on."""
    long = setup.number("long_frac")
    short = (setup.number("input_mean_tokens"), setup.number("output_mean_tokens"), 1.0 - long)
    other = (setup.number("input_long_tokens"), setup.number("output_long_tokens"), long)
    return (
        setup.word("model"),
        setup.word("devices"),
        (short, other)[: 1 + (long > 0.0)],
        int(setup.number("num_requests")),
    )


@cache
def profile(key: Key) -> tuple[tuple[Bucket, ...], tuple[tuple[ReplicaRates, ...], ...]]:
    """Kinds of requests, and every device's pace on each."""
    model, devices, traffic, count = key
    draws = stream(0, "melange/lengths")
    inputs, outputs = (
        np.concatenate([length(kind[side]).draw(round(kind[2] * count), draws) for kind in traffic]) for side in (0, 1)
    )
    kinds = buckets(inputs, outputs, EDGES)
    deployments = [deployment(Setup(name=d, inputs={}), model=model, device=d) for d in words(devices)]
    return kinds, tuple(tuple(pace(d, k.input_tokens, k.output_tokens) for k in kinds) for d in deployments)


def length(mean_tokens: float) -> Lognormal:
    """Lognormal lengths of that mean, spread by a factor e."""
    return Lognormal(mu=lognormal_centre(mean_tokens, 1.0, MAX_TOKENS), sigma=1.0, most_tokens=MAX_TOKENS)

"""MoE-Lens: mixtures whose weights stream from the host, prompts beside decodes against phases with padding."""

from collections.abc import Iterator
from itertools import product
from math import exp, sqrt

import numpy as np

from orrery.base.units import percent
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.scenario.host_attention import HostAttentionAnswer
from orrery.scenario.simulations import simulate
from orrery_papers.shared.layer_costs import words

SIGMA = 0.7
"""Spread of the prompts: see [unstated] prompts."""

DIFFERS = (
    "the baseline: it is given the same kernels and link here, and only pads, reserves whole answers and keeps prompts "
    "and answers apart; lengths and sizes of the cache are recalled, and the largest reported ratios are of runs whose "
    "batch its own policy search held back"
)


def predict(paper: Paper) -> Iterator[Prediction]:
    """Mean and most."""
    claims = {claim.id: claim for claim in paper.claims}
    found = dict(cases(claims["mean"].setup))
    gains = [answer.gain for answer in found.values()]
    closed = np.mean([answer.closed_s / answer.duration_s for answer in found.values()])
    yield Prediction(
        claim="mean",
        predicted=float(np.mean(gains)),
        because=f"{len(found)} cases, {min(gains):.1f} to {max(gains):.1f}: prompts enter beside decodes into a cache "
        "in blocks, against batches of padded prompts that reserve their whole answers; the closed form says "
        f"{closed:.2f} times the seconds of all passes played",
        differs=DIFFERS,
    )
    name, best = max(found.items(), key=lambda case: case[1].gain)
    yield Prediction(
        claim="most",
        predicted=best.gain,
        because=f"{name}: {best.phased_s:.0f} s against {best.duration_s:.0f} s, "
        f"{percent(best.output_tokens_per_s / best.limit_tokens_per_s)} of what an endless run would answer a second",
        differs=DIFFERS,
    )


def cases(setup: Setup) -> Iterator[tuple[str, HostAttentionAnswer]]:
    """All that is swept, as ``orrery simulate`` answers for it."""
    models, rooms = words(setup.word("models")), setup.numbers("host_caches_swept")
    mean_tokens = setup.number("input_mean_tokens")
    for model, room, answer in product(models, rooms, setup.numbers("output_tokens_swept")):
        found = simulate(
            model=model,
            device=setup.word("device"),
            weights=setup.word("weights_format"),
            expert_offload="host-attention",
            host_kv_bytes=room,
            host_memory_bytes_per_s=setup.number("host_memory_bytes_per_s"),
            lengths="lognormal",
            input_tokens=int(mean_tokens),
            input_tokens_std=mean_tokens * sqrt(exp(SIGMA**2) - 1.0),
            output_tokens=int(answer),
            max_model_len=int(setup.number("input_most_tokens") + answer),
            num_requests=int(setup.number("num_requests")),
        )
        assert isinstance(found, HostAttentionAnswer)
        yield f"{model}, {room / 1e9:.0f} GB of cache, answers of {answer:.0f}", found

"""MoE-Lens: mixtures whose weights stream from the host, prompts beside decodes against phases with padding."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from orrery.engine.streams import stream
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.execution.batch import Floats, Ints
from orrery.execution.experts.host_cache import HostCached, finite_s, limit_tokens_per_s, phased_s, played
from orrery.execution.layout import Deployment
from orrery.execution.offload.tiers import HOST_MEMORY_FRAC
from orrery.execution.shard import cache_of, shard
from orrery.execution.step import step
from orrery.execution.transfer import HOST_RATE_FRAC
from orrery.serving.synthesis.clipped import lognormal_centre
from orrery_papers.shared.layer_costs import words
from orrery_papers.shared.passes import decodes
from orrery_papers.shared.setup import Lognormal, deployment

TOKENS = np.unique(np.rint(2.0 ** np.arange(0.0, 20.5, 0.5)).astype(np.int64))
"""Tokens of a pass at which its products are costed; between them times are read off a line."""

SIGMA = 0.7
"""Spread of the prompts: see [unstated] prompts."""

DIFFERS = (
    "the baseline: it is given the same kernels and link here, and only pads, reserves whole answers and keeps prompts "
    "and answers apart; lengths and sizes of the cache are recalled, and the largest reported ratios are of runs whose "
    "batch its own policy search held back"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """One model, cache and answer, and its requests."""

    name: str
    work: HostCached
    drawn: Ints
    longest_tokens: int

    @property
    def gain(self) -> float:
        """How many times faster than in phases."""
        return self.phased_s / self.mixed_s

    @cached_property
    def mixed_s(self) -> float:
        """Seconds where prompts enter beside decodes, pass by pass."""
        return played(self.work, self.drawn)

    @property
    def phased_s(self) -> float:
        """Seconds of the baseline."""
        return phased_s(self.work, self.drawn.size, self.longest_tokens)

    @property
    def limit_frac(self) -> float:
        """Answer tokens a second over those of an endless run."""
        return self.drawn.size * self.work.output_tokens / self.mixed_s / limit_tokens_per_s(self.work)

    @property
    def closed_ratio(self) -> float:
        """What the closed form, from mean lengths, says of that time."""
        return finite_s(self.work, self.drawn.size) / self.mixed_s


def predict(paper: Paper) -> Iterator[Prediction]:
    """Mean and most."""
    claims = {claim.id: claim for claim in paper.claims}
    found = list(cases(claims["mean"].setup))
    gains = [case.gain for case in found]
    yield Prediction(
        claim="mean",
        predicted=float(np.mean(gains)),
        because=f"{len(found)} cases, {min(gains):.1f} to {max(gains):.1f}: prompts enter beside decodes into a cache "
        "in blocks, against batches of padded prompts that reserve their whole answers; the closed form says "
        f"{np.mean([case.closed_ratio for case in found]):.2f} times the seconds of all passes played",
        differs=DIFFERS,
    )
    best = max(found, key=lambda case: case.gain)
    yield Prediction(
        claim="most",
        predicted=best.gain,
        because=f"{best.name}: {best.phased_s:.0f} s against {best.mixed_s:.0f} s, {best.limit_frac:.0%} of what an "
        "endless run would answer a second",
        differs=DIFFERS,
    )


def cases(setup: Setup) -> Iterator[Case]:
    """All that is swept."""
    drawn, most = prompts(setup), int(setup.number("input_most_tokens"))
    for model in words(setup.word("models")):
        served = deployment(setup, model=model)
        table = products_s(served)
        for room, answer in product(setup.numbers("host_caches_swept"), setup.numbers("output_tokens_swept")):
            yield Case(
                name=f"{model}, {room / 1e9:.0f} GB of cache, answers of {answer:.0f}",
                drawn=drawn,
                work=host_cached(setup, served, table, room, int(answer)),
                longest_tokens=most,
            )


def prompts(setup: Setup) -> Ints:
    """Lengths with the stated mean, none beyond the longest."""
    mean, most = setup.number("input_mean_tokens"), setup.number("input_most_tokens")
    law = Lognormal(mu=lognormal_centre(mean, SIGMA, most), sigma=SIGMA, most_tokens=most)
    return law.draw(int(setup.number("num_requests")), stream(0, "lengths/input"))


def host_cached(setup: Setup, served: Deployment, table: Floats, room: float, answer: int) -> HostCached:
    """The model's weights, products and cache in seconds, with so many bytes of cache."""
    link = served.cluster.device.host.each_way_bytes_per_s * HOST_RATE_FRAC
    memory = setup.number("host_memory_bytes_per_s") * HOST_MEMORY_FRAC
    token_bytes = cache_of(served).bytes_per_token
    return HostCached(
        weights_s=shard(served).weight_bytes / link,
        products_s=lambda tokens: float(np.interp(tokens, TOKENS, table)),
        attention_s_per_tokens=token_bytes / memory,
        cache_tokens=room / token_bytes,
        input_tokens=int(setup.number("input_mean_tokens")),
        output_tokens=answer,
    )


def products_s(served: Deployment) -> Floats:
    """All products and element-wise kernels of a pass, without attention, which the host does."""
    parts = step(served, decodes(TOKENS, np.ones_like(TOKENS))).parts
    return np.sum([p.time_s for p in parts if p.op in ("gemm", "moe", "elementwise")], axis=0)

"""Experts of a layer shared out between a device that keeps some of them, its host, and the link between the two.

Fixed: the device computes what it keeps, the host the rest. Greedy: of the rest the host takes the smallest load and
the link brings the largest one to the device, whichever is done first, one after the other; a host that is idle helps
with the smallest that the device keeps. While the link idles it brings experts of the next layer. What is kept follows
a score of every expert that fades with each token, so those used lately and often stay. [hybrimoe-2025]
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Work = Mapping[int, int]
"""Tokens of each expert that has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Time of an expert on the device and on the host, by its tokens, and time to cross the link."""

    device_s: Callable[[int], float]
    host_s: Callable[[int], float]
    load_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One layer: its time, what was brought to the device for it, and how long the link was busy."""

    time_s: float
    loaded: tuple[int, ...] = ()
    link_s: float = 0.0


def fixed(work: Work, resident: frozenset[int], shares: Shares) -> Shared:
    """Each side computes its own, at the same time."""
    device_s = sum(shares.device_s(n) for e, n in work.items() if e in resident)
    host_s = sum(shares.host_s(n) for e, n in work.items() if e not in resident)
    return Shared(time_s=max(device_s, host_s))


def greedy(work: Work, resident: frozenset[int], shares: Shares) -> Shared:
    """The rest dealt out one expert at a time; then the host helps the device while that is sooner done."""
    own = sorted((n for e, n in work.items() if e in resident), reverse=True)
    rest = sorted(((n, e) for e, n in work.items() if e not in resident), reverse=True)
    device_s, host_s, link_s = sum(shares.device_s(n) for n in own), 0.0, 0.0
    loaded: list[int] = []
    while rest:
        by_host_s = host_s + shares.host_s(rest[-1][0])
        by_link_s = max(link_s + shares.load_s, device_s) + shares.device_s(rest[0][0])
        if by_host_s <= by_link_s:
            host_s = by_host_s
            rest.pop()
        else:
            link_s, device_s = link_s + shares.load_s, by_link_s
            loaded.append(rest.pop(0)[1])
    while own and host_s + shares.host_s(own[-1]) < device_s:
        device_s -= shares.device_s(own[-1])
        host_s += shares.host_s(own.pop())
    return Shared(time_s=max(device_s, host_s), loaded=tuple(loaded), link_s=link_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Routers' scores, token by token: experts that a token liked the next one likes too, by ``repeat_frac``."""

    num_layers: int
    num_experts: int
    experts_per_token: int
    repeat_frac: float
    num_tokens: int

    def __post_init__(self) -> None:
        if not 0.0 <= self.repeat_frac < 1.0:
            raise ScenarioError(f"repeat_frac = {self.repeat_frac:g} in Trace; write 0, up to below 1.")

    def scores(self, seed: int = 0) -> Floats:
        """Tokens x layers x experts, standard normal, each with that correlation to the token before it."""
        draws = np.random.default_rng(seed).standard_normal((self.num_tokens, self.num_layers, self.num_experts))
        for i in range(1, self.num_tokens):
            draws[i] = self.repeat_frac * draws[i - 1] + np.sqrt(1.0 - self.repeat_frac**2) * draws[i]
        return draws

    def chosen(self, scores: Floats) -> NDArray[np.int64]:
        """The experts of every token and layer, the best first."""
        return np.argsort(-scores, axis=-1, kind="stable")[..., : self.experts_per_token]


FADING_FRAC = 0.3
"""How much of a score the newest token sets; assumed."""


def decoded_fixed(trace: Trace, shares: Shares, kept_frac: float, seed: int = 0) -> float:
    """Seconds of all experts of all tokens, one token at a time, with the same experts kept throughout."""
    resident = frozenset(range(round(kept_frac * trace.num_experts)))
    every = trace.chosen(trace.scores(seed)).reshape(-1, trace.experts_per_token)
    return sum(fixed(dict.fromkeys(row, 1), resident, shares).time_s for row in every.tolist())


def decoded_greedy(trace: Trace, shares: Shares, kept_frac: float, other_s: float, seed: int = 0) -> float:
    """The same, dealt out anew in each layer; ``other_s`` of every layer the link is free as well.

    Idle time of the link adds up until an expert has come: the best of the next layer that is not there. It takes the
    place of the one with the lowest score.
    """
    scores, room = trace.scores(seed), round(kept_frac * trace.num_experts)
    chosen, shown = trace.chosen(scores), np.zeros(scores.shape[1:])
    resident = [set(range(room)) for _ in range(trace.num_layers)]
    total_s = idle_s = 0.0
    for token, layers in enumerate(chosen.tolist()):
        for layer, row in enumerate(layers):
            shown[layer] += FADING_FRAC * (scores[token, layer] - shown[layer])
            done = greedy(dict.fromkeys(row, 1), frozenset(resident[layer]), shares)
            total_s += done.time_s
            for expert in done.loaded:
                _keep(resident[layer], expert, shown[layer])
            idle_s += done.time_s + other_s - done.link_s
            following = (layer + 1) % trace.num_layers
            after = layers if following else chosen[min(token + 1, trace.num_tokens - 1)].tolist()
            missing = [e for e in after[following] if e not in resident[following]]
            if room and missing and idle_s >= shares.load_s:
                _keep(resident[following], missing[0], shown[following])
                idle_s = 0.0
    return total_s


def _keep(resident: set[int], expert: int, shown: Floats) -> None:
    """Put it in the place of the one with the lowest score."""
    if resident and expert not in resident:
        resident.remove(min(resident, key=lambda e: float(shown[e])))
        resident.add(expert)

"""Time of a layer's experts where most lie on the host: steps played one after the other, by tokens in a step.

Tokens draw scores around the logarithm of each expert's popularity, which a sequence's next token repeats in part,
and choose the best. Device, host and link share each layer as ``hybrid`` deals it out; what is kept follows the rule of
the cache. A layer on the device alone takes what the kernel of all experts takes; an expert of it its share of the
experts hit. While everything else of a layer runs (its weights at the memory's rate) the link is free, too.

No way of sharing takes less than the bound, given what is resident: of the missing experts the host takes those that
it is quickest with and the link the others, parts of one expert too, until both end together. Without a host that
computes it is the longer of what is resident and of all that is missing over the link.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.execution.experts.hybrid import Shared, Shares, Work, faded, fixed, greedy
from orrery.execution.host_experts import HostExperts, room_of
from orrery.execution.host_rates import HOST_MEMORY_FRAC, HOST_RATE_FRAC
from orrery.kernels.moe.routing import chosen_fracs
from orrery.kernels.ops import Popularity

Floats = NDArray[np.float64]

GRID = tuple(2**i for i in range(15))
"""Tokens of a step at which layers are played."""

NUM_LAYERS, SEED = 3, 7
FEW_STEPS, MANY_STEPS = (6, 2), (24, 8)
"""Steps that count and steps before them, where tokens are many and their loads hardly vary, and where they are few."""

MAX_DRAWN_TOKENS = 64
"""Tokens whose scores are drawn one by one; more are independent draws of counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One layer's experts as a device holds them, and what brings them there."""

    num_experts: int
    experts_per_token: int
    expert_bytes: float
    expert_parameters: float
    link_bytes_per_s: float
    other_s: float  # of a layer, in which the link is free


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Seconds of a layer over those of the same experts on the device, and the same of the bound, by ``GRID``."""

    shown_ratio: tuple[float, ...]
    bound_ratio: tuple[float, ...]

    def beside_whole(self, frac: float) -> "Played":
        """Both on average over layers of which that share has all experts on the device."""
        shown, bound = (
            tuple(frac + (1.0 - frac) * ratio for ratio in each) for each in (self.shown_ratio, self.bound_ratio)
        )
        return Played(shown_ratio=shown, bound_ratio=bound)


@lru_cache(maxsize=256)
def played(rule: HostExperts, machine: Machine, law: Popularity, kernel_s: tuple[float, ...]) -> Played:
    """Layers of steps with as many tokens as ``GRID`` says; ``kernel_s`` is what all experts take on the device."""
    each = [_played(rule, machine, law, tokens, seconds) for tokens, seconds in zip(GRID, kernel_s, strict=True)]
    return Played(shown_ratio=tuple(a for a, _ in each), bound_ratio=tuple(b for _, b in each))


def _played(rule: HostExperts, m: Machine, law: Popularity, tokens: int, kernel_s: float) -> tuple[float, float]:
    random = np.random.default_rng(SEED)
    chosen = chosen_fracs(m.num_experts, m.experts_per_token, law)
    load_s = m.expert_bytes / (m.link_bytes_per_s * HOST_RATE_FRAC)
    caches = [_Cache(rule, m.experts_per_token, np.argsort(-chosen)) for _ in range(NUM_LAYERS)]
    scores = _first_scores(random, chosen, tokens)
    total_s = bound_s = idle_s = 0.0
    counted, before = MANY_STEPS if scores else FEW_STEPS
    for step in range(counted + before):
        layers = [_counts(random, rule, chosen, tokens, m.experts_per_token, scores, i) for i in range(NUM_LAYERS)]
        for i, (counts, probabilities) in enumerate(layers):
            work = {int(e): int(counts[e]) for e in np.flatnonzero(counts)}
            shares = _shares(rule, m, kernel_s / max(len(work), 1), load_s)
            resident = frozenset(caches[i].held)
            done = _shared(rule, work, resident, shares)
            caches[i].use(work, probabilities, done.loaded)
            if step >= before:
                total_s += done.time_s
                bound_s += _bound_s(rule, work, resident, shares)
            idle_s = min(idle_s + done.time_s + m.other_s - done.link_s, 2.0 * load_s)
            if rule.prefetch_frac and i + 1 < NUM_LAYERS and idle_s >= load_s and caches[i + 1].room:
                caches[i + 1].fetch(layers[i + 1][0], rule.prefetch_frac, random)
                idle_s = 0.0
    whole_s = NUM_LAYERS * counted * kernel_s
    return total_s / whole_s, bound_s / whole_s


def _first_scores(random: np.random.Generator, chosen: Floats, tokens: int) -> list[Floats]:
    """Scores of each layer's tokens, less what popularity adds."""
    if tokens > MAX_DRAWN_TOKENS:
        return []
    return [random.standard_normal((tokens, len(chosen))) for _ in range(NUM_LAYERS)]


def _counts(
    random: np.random.Generator,
    rule: HostExperts,
    chosen: Floats,
    tokens: int,
    each: int,
    scores: list[Floats],
    layer: int,
) -> tuple[NDArray[np.int64], Floats]:
    """Tokens of every expert in one step of a layer, and the routers' probabilities: of each token, or of the mean."""
    if not scores:
        return random.binomial(tokens, chosen).astype(np.int64), chosen[None, :] / chosen.sum()
    old, keep = scores[layer], rule.repeat_frac
    scores[layer] = keep * old + np.sqrt(1.0 - keep**2) * random.standard_normal(old.shape)
    ranked = scores[layer] + np.log(np.maximum(chosen, 1e-9))
    best = np.argpartition(-ranked, each - 1, axis=1)[:, :each] if each < len(chosen) else np.argsort(-ranked, axis=1)
    likely = np.exp(ranked - ranked.max(axis=1, keepdims=True))
    probabilities = likely / likely.sum(axis=1, keepdims=True)
    return np.bincount(best.ravel(), minlength=len(chosen)).astype(np.int64), probabilities


def _shares(rule: HostExperts, m: Machine, device_s: float, load_s: float) -> Shares:
    """Seconds of an expert on either side, and on the link."""
    if not rule.computes:
        return Shares(device_s=lambda _: device_s, host_s=lambda _: np.inf, load_s=load_s)
    read_s = m.expert_bytes / (rule.host_memory_bytes_per_s * HOST_MEMORY_FRAC)
    each_s = 2.0 * m.expert_parameters / rule.host_flops_per_s
    return Shares(device_s=lambda _: device_s, host_s=lambda n: max(read_s, n * each_s), load_s=load_s)


def _shared(rule: HostExperts, work: Work, resident: frozenset[int], shares: Shares) -> Shared:
    """One layer, shared out as the rule says."""
    if rule.computes:
        return (greedy if rule.schedule == "greedy" else fixed)(work, resident, shares)
    device_s = sum(shares.device_s(n) for e, n in work.items() if e in resident)
    missing = sorted((e for e in work if e not in resident), key=lambda e: -work[e])
    for number, expert in enumerate(missing, 1):
        device_s = max(device_s, number * shares.load_s) + shares.device_s(work[expert])
    return Shared(time_s=device_s, loaded=tuple(missing), link_s=len(missing) * shares.load_s)


def _bound_s(rule: HostExperts, work: Work, resident: frozenset[int], shares: Shares) -> float:
    """The least that any way of sharing the missing experts takes; a host that helps the device is counted in."""
    own = [n for e, n in work.items() if e in resident]
    missing = [n for e, n in work.items() if e not in resident]
    if not rule.computes:
        return max(sum(map(shares.device_s, own)), len(missing) * shares.load_s)
    return split_s(sorted(map(shares.host_s, missing)), shares.load_s)


def split_s(host_s: list[float], load_s: float) -> float:
    """When both end together, parts of an expert allowed: the host from its quickest up, the link from the other end.

    With ``host_s`` = 1, 2 and 4 and 2 a load, the host does the first and 3/4 of the second, and the link brings 1/4 of
    the second and the third: both take 2.5.
    """
    done_s, left = 0.0, float(len(host_s))
    for seconds in host_s:
        if done_s + seconds >= (left - 1.0) * load_s:
            part = max(0.0, left * load_s - done_s) / (seconds + load_s)
            return done_s + part * seconds
        done_s, left = done_s + seconds, left - 1.0
    return done_s


class _Cache:
    """Experts of one layer that the device keeps."""

    def __init__(self, rule: HostExperts, each: int, popular: NDArray[np.int64]) -> None:
        self.rule, self.each, self.room = rule, each, room_of(rule, popular.size)
        self.held = set(popular[: self.room].tolist())
        self.worth = np.zeros(popular.size)  # when each was used last, or its faded score
        self.now = 0

    def use(self, work: Work, probabilities: Floats, loaded: tuple[int, ...]) -> None:
        """Count what a step used, and keep what came."""
        self.now += 1
        if self.rule.cache == "score":
            self.worth = faded(self.worth, probabilities, self.each)
        else:
            for expert in work:
                self.worth[expert] = self.now
        for expert in loaded:
            self.keep(expert)

    def fetch(self, counts: NDArray[np.int64], right_frac: float, random: np.random.Generator) -> None:
        """Bring the expert that the predictor names: one that is missing, or one of the others that are not here."""
        away = [e for e in range(len(counts)) if e not in self.held]
        missing = [e for e in away if counts[e]]
        if not away:
            return
        is_right = bool(missing) and random.random() < right_frac
        named = max(missing, key=lambda e: int(counts[e])) if is_right else int(random.choice(away))
        self.keep(named)

    def keep(self, expert: int) -> None:
        """Put it in the place of the one that is worth least."""
        if self.rule.cache == "static" or not self.room or expert in self.held:
            return
        self.held.remove(min(self.held, key=lambda e: (float(self.worth[e]), e)))
        self.held.add(expert)

"""A request's cache between regions: what it takes to compute it again, and what moving it would have to beat.

A request that another region serves is computed there anew, unless caches may move (``cache_moves``). The cache of its
whole input over the time and the rent of that is the rate, and the price of a gigabyte, at which moving would be as
good; the way between the regions comes on top of the time.
"""

from dataclasses import dataclass

from orrery.base.units import figures, text
from orrery.execution.transfer import kv_bytes
from orrery.fleet.service.result import FleetRun


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedCache:
    """The cache of a request of mean input in one region."""

    region: str
    context_tokens: float
    cache_bytes: float
    recompute_s: float  # to the first token of a request alone
    recompute_usd: float  # rent of a replica for so long
    quicker_above_bytes_per_s: float
    cheaper_below_usd_per_gb: float


def sentences(moved: tuple[MovedCache, ...]) -> tuple[str, ...]:
    """Each cache in a sentence; regions in which it is the same are in one."""
    regions: dict[tuple[float, float], list[str]] = {}
    for m in moved:
        regions.setdefault((m.recompute_s, m.recompute_usd), []).append(m.region)
    first = {(m.recompute_s, m.recompute_usd): m for m in reversed(moved)}
    return tuple(
        f"A cache of {figures(m.context_tokens)} tokens ({text(m.cache_bytes, 'bytes')}) is computed again in "
        f"{text(m.recompute_s, 's')} ({', '.join(regions[key])}); moved between regions it would be there sooner above "
        f"{text(m.quicker_above_bytes_per_s, 'bytes')}/s, and cheaper below ${figures(m.cheaper_below_usd_per_gb)} a "
        "gigabyte."
        for key, m in reversed(first.items())
    )


def moved_caches(run: FleetRun) -> tuple[MovedCache, ...]:
    """The cache of a request of mean input in every region, on the region's first pool."""
    setup, found = run.setup, run.setup.regions
    if found is None or not run.requests.count:
        return ()
    tokens = float(run.requests.input_tokens.mean())
    rows: list[MovedCache] = []
    for k, region in enumerate(found.regions):
        pool = setup.region_numbers.index(k)
        held = kv_bytes(setup.service.own_pools[pool].deployment, tokens)
        again_s = float(found.served.ttft_s[k])
        usd = again_s * setup.terms[pool].usd_per_s
        rows.append(
            MovedCache(
                region=region.name,
                context_tokens=tokens,
                cache_bytes=held,
                recompute_s=again_s,
                recompute_usd=usd,
                quicker_above_bytes_per_s=held / again_s,
                cheaper_below_usd_per_gb=usd / (held / 1e9),
            )
        )
    return tuple(rows)

"""Caches of conversations that change their region: moved over a wide-area link, or computed again there.

The run computes all of them again; here its requests are asked, in the order in which they came, for what moving their
caches would have taken. The run itself stays as it is: computing that is spared is not given to other requests, and
later turns come when they came. The region that served the turn before is taken to hold all of it still.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.units import figures, percent, text
from orrery.execution.layout import Deployment
from orrery.execution.transfer import kv_bytes
from orrery.fleet.regions.moves import HeldElsewhere, Moves, WideArea, moves
from orrery.fleet.service.result import FleetRun
from orrery.scenario.fleet.served import ttft_alone_s
from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.tables import _kernel as tables

MIN_TOKENS = 16.0
STEP_RATIO = 2.0**0.25
"""Lengths at which the time of a prompt is computed; between two of them it is a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where moving a cache of mean length from one region to another is as quick as computing it."""

    holder: str
    region: str
    num_requests: int
    cache_tokens: float  # mean
    again_s: float
    above_bytes_per_s: float | None  # of an idle link; None: the round trip alone takes longer
    above_tokens: float | None  # over this link while it is idle; None: at no length of the run


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMoves:
    """All caches that lay elsewhere, and those that moved."""

    way: str
    link_bytes_per_s: float
    num_elsewhere: int
    num_moved: int
    moved_bytes: float
    mean_wait_s: float  # in the queue of a link, of those that moved
    mean_move_s: float
    mean_again_s: float  # of all that lay elsewhere
    mean_saved_s: float  # likewise; below 0 where moving takes longer
    busiest_link_frac: float
    prefill_spared_s: float  # replicas' time
    prefill_spared_usd: float
    egress_usd: float | None  # None: its price is not known
    p99_ttft_s: float | None  # of all requests, computed again
    p99_ttft_moved_s: float | None
    break_even: tuple[BreakEven, ...]


def cache_moves_of(run: FleetRun) -> CacheMoves | None:
    """The caches of a run's conversations; None where none may move."""
    found = run.setup.regions
    area = found.wide_area if found else None
    if found is None or area is None:
        return None
    picked, held_tokens = _held_elsewhere(run)
    again, sizes = _computed_again(run, picked, held_tokens)
    region, holder = run.outcome.region.astype(np.int64), _holders(run)
    held = HeldElsewhere(
        asked_s=(run.arrive_s + run.reach_s)[picked],
        holder=holder[picked],
        region=region[picked],
        size_bytes=sizes,
        again_s=again,
    )
    done = moves(held, area)
    return _summary(run, area, picked, held_tokens, held, done)


def _holders(run: FleetRun) -> Ints:
    """The region that served the turn before each request; -1 where there was none."""
    after = run.requests.after
    if not after.size:
        return np.full(run.requests.count, -1, dtype=np.int64)
    return np.where(after >= 0, run.outcome.region[np.maximum(after, 0)], -1).astype(np.int64)


def _held_elsewhere(run: FleetRun) -> tuple[Ints, Floats]:
    """Requests that another region holds more of than theirs, and the tokens that it holds of each."""
    requests, holder = run.requests, _holders(run)
    before = np.maximum(requests.after, 0) if requests.after.size else np.zeros(requests.count, dtype=np.int64)
    held = np.minimum(requests.input_tokens[before] + requests.output_tokens[before], requests.input_tokens - 1)
    is_done = run.outcome.status == tables.DONE
    is_elsewhere = is_done & (holder >= 0) & (holder != run.outcome.region) & (held > run.outcome.cached_tokens)
    picked = np.flatnonzero(is_elsewhere)
    return picked, held[picked].astype(np.float64)


def _computed_again(run: FleetRun, picked: Ints, held: Floats) -> tuple[Floats, Floats]:
    """Time that computing the missing tokens takes on the region's first pool, and the bytes of their cache."""
    again, sizes = np.zeros(picked.size), np.zeros(picked.size)
    have = run.outcome.cached_tokens[picked].astype(np.float64)
    for k in np.unique(run.outcome.region[picked]).tolist():
        mine, deployment = run.outcome.region[picked] == k, _deployment(run, k)
        lengths, prompt_s = _prompt_times(deployment, float(held[mine].max()))
        again[mine] = np.interp(held[mine], lengths, prompt_s) - np.interp(have[mine], lengths, prompt_s)
        ends = zip(held[mine].tolist(), have[mine].tolist(), strict=True)
        sizes[mine] = [kv_bytes(deployment, end) - kv_bytes(deployment, start) for end, start in ends]
    return again, sizes


def _deployment(run: FleetRun, region: int) -> Deployment:
    pool = run.setup.region_numbers.index(region)
    return run.setup.service.own_pools[pool].deployment


def _prompt_times(deployment: Deployment, longest: float) -> tuple[Floats, Floats]:
    """Lengths of prompts and the time that each takes alone, beyond that of the shortest."""
    num = 2 + int(np.ceil(np.log(max(longest, 2.0 * MIN_TOKENS) / MIN_TOKENS) / np.log(STEP_RATIO)))
    lengths = MIN_TOKENS * STEP_RATIO ** np.arange(num)
    times = np.array([ttft_alone_s(deployment, float(n)) for n in lengths])
    return lengths, np.maximum.accumulate(times - times[0])


def _summary(
    run: FleetRun, area: WideArea, picked: Ints, tokens: Floats, held: HeldElsewhere, done: Moves
) -> CacheMoves:
    saved = np.where(done.is_moved, held.again_s - done.move_s, 0.0)
    ttft_s = run.ttft_s.copy()
    ttft_s[picked] -= saved
    regions, moved_bytes = run.setup.regions, float(held.size_bytes[done.is_moved].sum())
    spared = np.where(done.is_moved, held.again_s, 0.0)
    usd = [run.setup.terms[run.setup.region_numbers.index(int(k))].usd_per_s for k in held.region]
    return CacheMoves(
        way=area.way,
        link_bytes_per_s=area.bytes_per_s,
        num_elsewhere=picked.size,
        num_moved=int(done.is_moved.sum()),
        moved_bytes=moved_bytes,
        mean_wait_s=_mean(done.wait_s[done.is_moved]),
        mean_move_s=_mean(done.move_s[done.is_moved]),
        mean_again_s=_mean(held.again_s),
        mean_saved_s=_mean(saved),
        busiest_link_frac=max(done.busy_s.values(), default=0.0) / max(run.end_s, 1e-9),
        prefill_spared_s=float(spared.sum()),
        prefill_spared_usd=float(spared @ np.array(usd)) if usd else 0.0,
        egress_usd=None if area.usd_per_byte is None else area.usd_per_byte * moved_bytes,
        p99_ttft_s=_p99(run.ttft_s),
        p99_ttft_moved_s=_p99(ttft_s),
        break_even=tuple(_break_evens(run, area, tokens, held, [r.name for r in regions.regions] if regions else [])),
    )


def _break_evens(
    run: FleetRun, area: WideArea, tokens: Floats, held: HeldElsewhere, names: list[str]
) -> list[BreakEven]:
    """A row for each direction in which caches lay elsewhere."""
    pairs = sorted({(int(a), int(b)) for a, b in zip(held.holder, held.region, strict=True)})
    rows: list[BreakEven] = []
    for a, b in pairs:
        mine = (held.holder == a) & (held.region == b)
        trip_s, again_s = float(area.round_trip_s[a, b]), float(held.again_s[mine].mean())
        room_s = again_s - trip_s
        rows.append(
            BreakEven(
                holder=names[a],
                region=names[b],
                num_requests=int(mine.sum()),
                cache_tokens=float(tokens[mine].mean()),
                again_s=again_s,
                above_bytes_per_s=float(held.size_bytes[mine].mean()) / room_s if room_s > 0.0 else None,
                above_tokens=shortest_moved(_deployment(run, b), trip_s, area.bytes_per_s, float(tokens[mine].max())),
            )
        )
    return rows


def shortest_moved(deployment: Deployment, trip_s: float, bytes_per_s: float, longest: float) -> float | None:
    """Tokens from which a whole cache is there sooner over an idle link than it is computed; None: at no length."""
    lengths, prompt_s = _prompt_times(deployment, longest)
    gain_s = prompt_s - trip_s - np.array([kv_bytes(deployment, float(n)) for n in lengths]) / bytes_per_s
    above = np.flatnonzero(gain_s > 0.0)
    if not above.size:
        return None
    last = int(above[0])
    if last == 0:
        return float(lengths[0])
    return float(np.interp(0.0, gain_s[last - 1 : last + 1], lengths[last - 1 : last + 1]))


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else 0.0


def _p99(values: Floats) -> float | None:
    found = values[np.isfinite(values)]
    return float(np.quantile(found, 0.99)) if found.size else None


def move_sentences(found: CacheMoves | None) -> tuple[str, ...]:
    """Sentences on what moved, what that changed, and where moving begins to pay."""
    if found is None:
        return ()
    if not found.num_elsewhere:
        return ("No conversation changed its region, so no cache could move.",)
    lines = [
        f"{figures(found.num_elsewhere)} requests had their history in another region; "
        f"{percent(found.num_moved / found.num_elsewhere)} of these caches move (cache_moves = {found.way}): "
        f"{text(found.moved_bytes, 'bytes')}, {text(found.mean_move_s, 's')} each, of it "
        f"{text(found.mean_wait_s, 's')} in the queue of a link; the busiest is so "
        f"{percent(found.busiest_link_frac, 1)} of the time. Computing takes {text(found.mean_again_s, 's')}; "
        f"moving saves {text(found.mean_saved_s, 's')} a request and {text(found.prefill_spared_s, 's')} of replicas "
        f"(${figures(found.prefill_spared_usd)})"
        + ("" if found.egress_usd is None else f" for ${figures(found.egress_usd)} of traffic")
        + "."
    ]
    if found.p99_ttft_s is not None and found.p99_ttft_moved_s is not None:
        lines.append(f"p99 TTFT {text(found.p99_ttft_s, 's')} without, {text(found.p99_ttft_moved_s, 's')} with moves.")
    return (*lines, *map(_turn, found.break_even))


def _turn(row: BreakEven) -> str:
    rate = (
        "never at this distance" if row.above_bytes_per_s is None else f"above {text(row.above_bytes_per_s, 'bytes')}/s"
    )
    length = "no length of this run" if row.above_tokens is None else f"{figures(row.above_tokens)} tokens"
    return (
        f"From {row.holder} to {row.region}: {figures(row.cache_tokens)} tokens (mean) are computed in "
        f"{text(row.again_s, 's')} and there sooner {rate}; over this link from {length}."
    )

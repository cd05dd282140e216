"""Small runs with limits of a test's choosing, and what must hold after every one of them."""

from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

from orrery.base.compiled import source_of
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.engine.queue import _kernel as queue
from orrery.execution.compression import Compression
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.memory import Infeasible
from orrery.execution.speculation import Speculation
from orrery.execution.surface import _kernel as surface
from orrery.hardware.cluster import Cluster
from orrery.kernels.energy import _kernel as power
from orrery.serving.requests import Requests
from orrery.serving.simulation import _kernel as loop
from orrery.serving.simulation import prepare as tables_door
from orrery.serving.simulation import rules
from orrery.serving.simulation import simulate as door
from orrery.serving.simulation.admission import _kernel as admission
from orrery.serving.simulation.ahead import _kernel as ahead
from orrery.serving.simulation.allocation import _kernel as allocation
from orrery.serving.simulation.memory import _kernel as memory
from orrery.serving.simulation.price import _kernel as price
from orrery.serving.simulation.result import TIMELINE
from orrery.serving.simulation.service import Pool, Service, Split
from orrery.serving.simulation.sleeping import _kernel as sleeping
from orrery.serving.simulation.step_results import _kernel as step_results
from orrery.serving.simulation.tables import _kernel as k
from orrery.serving.simulation.timeline import _kernel as timeline

POLICIES = (
    "chunked-prefill",
    "prefill-first",
    "alternating",
    "iteration-level",
    "request-level",
    "packed-batch",
    "layered-prefill",
)
FLEETS = ("one", "three", "pipeline", "experts", "pools", "split")
BLOCK_TOKENS = 16


@cache
def deployment(kind="dense"):
    """One object a kind: its tables of step costs are built once."""
    model, degrees = {
        "dense": ("meta-llama/Llama-3.1-8B", {}),
        "pipeline": ("meta-llama/Llama-3.1-8B", {"pp": 2}),
        "experts": ("mistralai/Mixtral-8x7B-v0.1", {"dp": 2, "ep": 2}),
    }[kind]
    hardware, layout = get_device("h100-sxm"), Layout(**degrees)
    return Deployment(
        model=get_model(model),
        cluster=Cluster(device=hardware, num_devices=layout.num_devices, devices_per_node=8),
        layout=layout,
        formats=Formats(weights="bf16", activations="bf16", kv="bf16"),
        engine=get_engine("vllm", "", hardware),
        max_num_seqs=16,
        max_num_batched_tokens=512,
    )


def pools_of(fleet):
    """The pools of a kind of fleet."""
    if fleet == "pools":
        d = deployment()
        return (Pool(deployment=d, replicas=2, role="prompts"), Pool(deployment=d, replicas=2, role="answers"))
    kind = fleet if fleet in ("pipeline", "experts") else "dense"
    return (Pool(deployment=deployment(kind), replicas=3 if fleet == "three" else 1),)


def limiting(
    requests,
    *,
    blocks=None,
    spare_blocks=None,
    seats=None,
    budget=None,
    host_blocks=0,
    recv_interval=None,
    change=lambda a: a,
):
    """A patch that gives the fleet caches of ``blocks`` blocks (or of as many as the longest request needs, and some to
    spare), ``seats`` and ``budget`` tokens a lane, and any other change to the tables."""
    if spare_blocks is not None:
        longest = int((requests.input_tokens + requests.output_tokens).max())
        blocks = -(-longest // BLOCK_TOKENS) + spare_blocks
    assemble = tables_door.assemble

    def limited(service, sizes):
        a = assemble(service, sizes)
        assert not isinstance(a, Infeasible)
        lanes, capacity, host = a.lanes.copy(), a.capacity.copy(), a.host_capacity.copy()
        each = int(a.held[0, 1])
        if blocks is not None:
            capacity[:] = blocks * each
            lanes[:, k.POOLED] = capacity.sum() if service.lends_cache else capacity[lanes[:, k.POOL]]
        host[:] = host_blocks * each
        lanes[:, k.MAX_SEQS] = seats or lanes[:, k.MAX_SEQS]
        lanes[:, k.BUDGET] = budget or lanes[:, k.BUDGET]
        lanes[:, k.RECV_INTERVAL] = recv_interval or lanes[:, k.RECV_INTERVAL]
        return change(replace(a, lanes=lanes, capacity=capacity, host_capacity=host))

    return patch.object(tables_door, "assemble", limited)


def play(service, requests, *, concurrency=0, window=None, **limits):
    """Simulate under limits; the world, and its result."""
    found, build = [], door.build

    def retained(*args, **named):
        found.append(build(*args, **named))
        return found[-1]

    with limiting(requests, **limits), patch.object(door, "build", retained):
        result = door.simulate(service, requests, concurrency=concurrency, window=window)
    return found[0], result


def digest(world):
    """Everything that a run decided, bit for bit."""
    return b"".join(
        np.ascontiguousarray(x).tobytes()
        for x in (world.when, world.req, world.totals, world.timeline, world.gaps, world.memory.evictions)
    )


@st.composite
def traffic(draw, most=14, *, following=True):
    """A few requests: bursts or not, equal or not, with shared prefixes and with followers. Sizes come from a seed, so
    that they are never all small at once."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = int(rng.integers(1, most + 1))
    arrive = np.cumsum(rng.integers(0, 12, n)) * rng.choice([0.0, 0.001, 0.013])
    inputs = rng.integers(1, rng.choice([8, 60, 300]) + 1, n)
    outputs = rng.integers(1, rng.choice([1, 6, 40, 80]) + 1, n)
    after = session = np.zeros(0, dtype=np.int64)
    if following and rng.random() < 0.4:
        after = np.array([rng.integers(-1, i) for i in range(n)])
        free = after < 0
        arrive = np.where(free, arrive, 0.002)
        session = np.arange(n)
        for i in range(n):
            session[i] = i if free[i] else session[after[i]]
    start = ids = np.zeros(0, dtype=np.int64)
    unit = int(rng.choice([0, 16, 32]))
    if unit:
        start, ids = prefixes(inputs + outputs, rng.integers(0, 3, n), rng.integers(0, 12, n), unit)
    return Requests(
        arrive_s=arrive.astype(float),
        input_tokens=inputs,
        output_tokens=outputs,
        after=after,
        session=session,
        client=rng.integers(0, 3, n),
        priority=rng.integers(0, 3, n).astype(float),
        prefix_start=start,
        prefix_ids=ids,
        prefix_block_tokens=unit,
    )


def prefixes(lengths, family, common, unit):
    """Ids of whole blocks: the first ``common`` ones belong to the family, the others to the request alone."""
    known, ids, start = {}, [], [0]
    for i, length in enumerate(lengths.tolist()):
        for b in range(length // unit):
            key = (int(family[i]), b) if b < common[i] else (-1 - i, b)
            ids.append(known.setdefault(key, len(known)))
        start.append(len(ids))
    return np.array(start), np.array(ids, dtype=np.int64)


@st.composite
def setting(draw):
    """Names and numbers of a service with any mix of features, and of limits that hurt."""
    fleet, policy = draw(st.sampled_from(FLEETS)), draw(st.sampled_from(POLICIES))
    return {
        "fleet": fleet,
        "policy": policy,
        "queue": draw(st.sampled_from(["fcfs", "fair", "priority", "shortest-first"])),
        "router": draw(st.sampled_from(["least-loaded", "round-robin", "prefix-aware", "session-affinity"])),
        "preemption": draw(st.sampled_from(["recompute", "swap"])),
        "drafts": draw(st.sampled_from([0, 0, 3])),
        "compression": draw(
            st.sampled_from(
                [
                    {},
                    {},
                    {"kept_tokens_frac": 0.4},
                    {"budget_tokens": 32},
                    {"kept_bytes_frac": 0.5, "flops_per_token": 1e6},
                ]
            )
        ),
        "lends_cache": fleet in ("three", "pools") and draw(st.booleans()),
        "load_hides": draw(st.booleans()),
        "is_layerwise": draw(st.booleans()),
        "max_prefill_queue": draw(st.sampled_from([0, 1, 3])),
    }


@st.composite
def limits(draw):
    """Limits that hurt, and a closed loop or none."""
    return {
        "blocks": draw(st.sampled_from([None, 12, 40])),
        "spare_blocks": draw(st.sampled_from([None, 0, 1, 2, 4, 9])),
        "seats": draw(st.sampled_from([None, 1, 2, 5])),
        "budget": draw(st.sampled_from([None, 24, 100])),
        "host_blocks": draw(st.sampled_from([0, 0, 4, 40])),
        "concurrency": draw(st.sampled_from([0, 0, 1, 3])),
        "recv_interval": draw(st.sampled_from([None, None, 2, 7])),
    }


def service_of(*, fleet="one", policy="chunked-prefill", drafts=0, compression=None, **named):
    """The service of a setting."""
    return Service(
        pools=pools_of(fleet),
        policy=policy,
        prefix_caching=True,
        policy_knobs={"layer_group_tokens": 64} if policy == "layered-prefill" else {},
        speculation=Speculation(draft_tokens=drafts, acceptance_frac=0.6) if drafts else None,
        compression=Compression(**(compression or {})),
        split=Split(answers_fracs=(0.3, 0.6), target_s=0.008) if fleet == "split" else None,
        **named,
    )


def plain_python():
    """Patches that take the loop, its queues, its memory and its prices uncompiled."""
    found = []
    rooms = (
        loop,
        queue,
        surface,
        memory,
        k,
        ahead,
        timeline,
        sleeping,
        allocation,
        admission,
        price,
        step_results,
        power,
    )
    for module in (*rooms, power):
        for name, value in vars(module).items():
            if callable(value) and source_of(value) is not value:
                found.append(patch.object(module, name, source_of(value)))
    found += [patch.object(rules, "rule_of", lambda technique: technique.rule)]
    found += [patch.object(tables_door, "rule_of", lambda technique: technique.rule)]
    return found


def column(world, name):
    """The sum of a column of the timeline."""
    return float(world.timeline[:, TIMELINE.index(name)].sum())


def check(requests, world):
    """What must hold when a run has ended, whatever it was."""
    req, when, lanes = world.req, world.when, world.lanes
    status = req[:, k.STATUS]
    served = status == k.DONE
    assert set(status.tolist()) <= {k.DONE, k.REFUSED}, f"stuck: {status.tolist()}"
    assert world.counts[k.SERVED] == requests.count
    assert (np.isfinite(when[:, k.FINISH]) == served).all()
    arrived, admitted, first, finish = (when[served, c] for c in (k.ARRIVED_S, k.ADMITTED_S, k.FIRST, k.FINISH))
    assert (arrived <= admitted).all()
    assert (admitted < first).all()
    assert (first <= finish).all()
    _check_memory(world)
    assert (lanes[:, [k.NUM_DECODING, k.NUM_PROMPTS, k.NUM_WAITING, k.RESERVED, k.FAR, k.GUESTS]] == 0).all()
    assert (lanes[:, k.UNSEEN] == -1).all()
    assert (lanes[:, k.CONTEXT] == 0).all()
    assert np.abs(world.rates[:, [k.LOAD_REQUESTS, k.LOAD_TOKENS]]).max() < 1e-6
    sojourn_s = float((finish - arrived).sum())
    np.testing.assert_allclose(column(world, "running") + column(world, "waiting"), sojourn_s, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(column(world, "busy_s"), world.totals[k.BUSY], rtol=1e-9)
    assert column(world, "arrivals") == requests.count
    assert column(world, "finishes") == served.sum()
    _check_tokens(requests, world, served)
    if not world.rules.returns_together:
        np.testing.assert_allclose(world.totals[k.GAP_SUM], (finish - first).sum(), rtol=1e-9, atol=1e-12)


def _check_memory(world):
    memory = world.memory
    assert (memory.free + memory.evictable == memory.capacity).all()
    assert (memory.free >= 0).all()
    assert (memory.users <= 0).all()
    assert (world.req[:, [k.BLOCKS, k.SHARED, k.LENT, k.SOURCE_BLOCKS, k.SOURCE_SHARED, k.LENT_TOKENS]] == 0).all()


def _check_tokens(requests, world, served):
    made, output, preempted = (world.req[served, c] for c in (k.MADE, k.OUTPUT, k.PREEMPTED))
    assert (made >= output).all()
    assert world.rules.holds_batch or (made == output).all()
    again = output.sum() - served.sum() - column(world, "decode_tokens")  # tokens that a recomputation brought
    assert -1e-6 < again <= preempted.sum() + 1e-6
    if world.rules.swaps or not preempted.sum():
        assert abs(again) < 1e-6
    gaps = output.sum() - served.sum() - world.totals[k.ACCEPTED]
    np.testing.assert_allclose(world.gaps.sum(), gaps)
    least = (requests.input_tokens - world.req[:, k.CACHED])[served].sum()
    most = least + (preempted * (requests.input_tokens + requests.output_tokens)[served]).sum()
    assert least - 1e-6 < world.totals[k.PROMPTED] < most + 1e-6

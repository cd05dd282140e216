"""The compiled loop does what an obvious one does, and what its own source says."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from math import ceil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orrery.execution.surface._kernel import CHANNELS, MATRIX_WORK, MEMORY_WORK, TIME, device_cost
from orrery.kernels.energy._kernel import drawn_frac
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import TIMELINE
from orrery.serving.simulation.rules import POLICIES, QUEUES, ROUTERS
from orrery.serving.simulation.tables import _kernel as k
from orrery.serving.simulation.world import Window

sys.path.insert(0, str(Path(__file__).parent))
from oracle import Fleet, OracleRequest, Ways
from small_runs import deployment, digest, limits, plain_python, play, service_of, setting, traffic

QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def ways_of(world, chosen):
    """The rules of a run, taken from its tables."""
    lane, rates, out = world.lanes[0], world.rates[0], np.zeros(CHANNELS)
    grant, order, route = (
        extension_point.get(chosen[name]).rule
        for extension_point, name in ((POLICIES, "policy"), (QUEUES, "queue"), (ROUTERS, "router"))
    )

    def passed(prompts, new, pairs, decodes, context):
        out[:] = 0.0
        device_cost(
            world.surfaces,
            0,
            out,
            float(prompts),
            float(new),
            float(pairs),
            float(decodes),
            float(context),
            float(prompts + decodes),
            0.0,
        )

    def price_s(prompts, new, pairs, decodes, context):
        passed(prompts, new, pairs, decodes, context)
        sequences, launch_s = prompts + decodes, 0.0
        host_s = rates[k.HOST_STEP_S] + rates[k.HOST_PER_SEQUENCE_S] * sequences
        if prompts > 0 or decodes > rates[k.GRAPH_SEQS]:
            is_small = new + decodes <= rates[k.GRAPH_TOKENS]
            launch_s = rates[k.HOST_PIECES_S if is_small else k.HOST_LAUNCH_S]
        device_s = max(out[TIME], launch_s) + rates[k.SAMPLING_S] * sequences
        return max(device_s + (1.0 - rates[k.HOST_OVERLAP_FRAC]) * host_s, host_s + launch_s)

    def energy_j(prompts, new, pairs, decodes, context, step_s):
        """The law of power on a step's work, from idle to the limit."""
        passed(prompts, new, pairs, decodes, context)
        law = world.retained[0]
        share = drawn_frac(out[MATRIX_WORK], out[MEMORY_WORK], step_s, law[k.CONCAVE_POWER])
        return share * law[k.SPAN_W] * step_s * rates[k.DEVICE_WAYS]

    return Ways(
        capacity=int(world.memory.capacity[0]),
        block_bytes=int(world.held[0, 1]),
        block_tokens=world.block_tokens,
        unit_tokens=world.blocks_each * world.block_tokens,
        budget=int(lane[k.BUDGET]),
        seats=int(lane[k.MAX_SEQS]),
        mixes=world.rules.mixes,
        reserves=world.rules.reserves_output,
        evicts_by_key=world.rules.evicts_by_key,
        grant=lambda left, budget, taken: grant(left, budget, taken, int(lane[k.BUDGET]), world.knobs[k.GRANT]),
        order=lambda r, now_s, tag: order(
            now_s, r.priority, float(r.prompt), float(r.answer), tag, world.knobs[k.ORDER]
        ),
        route=lambda requests, tokens, found, home, turn: route(
            requests, tokens, found, home, turn, 0.0, 0.0, world.knobs[k.ROUTE]
        ),
        price_s=price_s,
        energy_j=energy_j,
        recv_interval=max(1, int(lane[k.RECV_INTERVAL])),
    )


def requested(world, requests):
    """The requests as objects, in the order in which the front end is done with them."""
    shares = world.blocks_each > 0
    start, ids = requests.prefix_start.tolist(), requests.prefix_ids.tolist()
    return [
        OracleRequest(
            number=i,
            enter_s=float(world.when[i, k.ENTER]),
            prompt=int(requests.input_tokens[i]),
            answer=int(requests.output_tokens[i]),
            ids=ids[start[i] : start[i + 1]] if shares else [],
            client=int(requests.client[i]),
            session=int(requests.session[i]) if requests.session.size else -1,
            priority=float(requests.priority[i]),
        )
        for i in world.order.tolist()
    ]


CHOSEN = st.fixed_dictionaries(
    {
        "fleet": st.sampled_from(["one", "three"]),
        "policy": st.sampled_from(["chunked-prefill", "prefill-first", "iteration-level"]),
        "queue": st.sampled_from(["fcfs", "fair", "priority", "shortest-first"]),
        "router": st.sampled_from(["least-loaded", "round-robin", "prefix-aware", "session-affinity"]),
    }
)


@settings(max_examples=2 * settings.default.max_examples, **QUIET)
@given(CHOSEN, limits(), traffic(following=False))
def test_the_loop_equals_the_oracle_bit_for_bit(chosen, limits, requests):
    compare(chosen, limits, requests)


@settings(max_examples=16, **QUIET)
@given(CHOSEN, limits(), traffic(following=False))
def test_a_few_runs_equal_the_oracle(chosen, limits, requests):
    """As many as are quick where nothing is compiled."""
    compare(chosen, limits, requests)


def compare(chosen, limits, requests):
    """A run beside the oracle's: times, choices and books."""
    window = Window(start_s=0.0, end_s=1e9, rows=10_000)
    world, _ = play(service_of(**chosen), requests, window=window, **limits | {"host_blocks": 0, "concurrency": 0})
    fleet = Fleet(ways_of(world, chosen), world.unit_machine.size, remembers=world.memory.num_ids > 0)
    found = fleet.run(requested(world, requests))
    for name, column in (("admitted_s", k.ADMITTED_S), ("first_s", k.FIRST), ("finish_s", k.FINISH)):
        np.testing.assert_array_equal([getattr(r, name) for r in found], world.when[world.order, column], err_msg=name)
    for name, column in (("preempted", k.PREEMPTED), ("cached", k.CACHED), ("machine", k.MACHINE)):
        np.testing.assert_array_equal([getattr(r, name) for r in found], world.req[world.order, column], err_msg=name)
    check_books(world, fleet, found, deployment().cluster.device.idle_power_w)


def check_books(world, fleet, found, idle_w):
    """The log of steps, the timeline, the gaps between tokens and the totals, against the oracle's events."""
    steps = np.array(fleet.books.steps).reshape(-1, 9)
    replica, start_s, end_s, new, decodes, prompts, waiting, held, joules = steps.T
    expected = np.column_stack([replica, start_s, end_s, new, decodes, prompts, decodes, waiting, held])
    logged = world.log[: int(world.totals[k.LOGGED])]
    np.testing.assert_array_equal(logged, expected)
    width_s = world.totals[k.WIDTH]
    ends = [r.finish_s for r in found if r.finish_s == r.finish_s]
    line = {name: np.zeros(len(world.timeline)) for name in TIMELINE}
    for name, at_s, amounts in (
        ("steps", end_s, np.ones(len(steps))),
        ("prompt_tokens", end_s, new),
        ("decode_tokens", end_s, decodes),
        ("energy_j", end_s, joules),
        ("arrivals", fleet.books.arrivals, np.ones(len(fleet.books.arrivals))),
        ("preemptions", fleet.books.preemptions, np.ones(len(fleet.books.preemptions))),
        ("finishes", ends, np.ones(len(ends))),
    ):
        np.add.at(line[name], (np.asarray(at_s) / width_s).astype(int), amounts)
    spans = [(a, b, "busy_s", 1.0) for a, b in zip(start_s, end_s, strict=True)]
    for a, b, running, waits, bytes_ in fleet.books.levels:
        spans += [(a, b, "running", running), (a, b, "waiting", waits), (a, b, "kv_bytes", bytes_)]
    for a, b, name, amount in spans:
        if amount and b > a:
            edges = np.arange(int(a / width_s), int(b / width_s) + 2) * width_s
            covered = np.minimum(edges[1:], b) - np.maximum(edges[:-1], a)
            line[name][int(a / width_s) : int(b / width_s) + 1] += amount * covered
    if ends:  # the result adds what devices draw all the time
        line["energy_j"][: max(1, ceil(max(ends) / width_s + 1e-9))] += idle_w * len(fleet.replicas) * width_s
    for i, name in enumerate(TIMELINE):
        np.testing.assert_allclose(world.timeline[:, i], line[name], rtol=1e-9, atol=1e-9, err_msg=name)
    gaps = np.array(fleet.books.gaps)
    counted = np.zeros(world.gaps.size)
    np.add.at(counted, (np.log10(np.maximum(gaps, 1e-6) / 1e-6) * 1000).astype(int), 1.0)
    np.testing.assert_allclose(np.cumsum(counted), np.cumsum(world.gaps), atol=len(gaps) * 0.02 + 1e-9)
    for total, value in (
        (k.TOTAL_STEPS, len(steps)),
        (k.ENERGY, joules.sum()),
        (k.BUSY, (end_s - start_s).sum()),
        (k.PROMPTED, new.sum()),
        (k.PADDED, 0.0),
        (k.GAP_SUM, gaps.sum()),
        (k.GAP_SQUARES, (gaps**2).sum()),
    ):
        np.testing.assert_allclose(world.totals[total], value, rtol=1e-9, atol=1e-12)


@settings(max_examples=25, **QUIET)
@given(setting(), limits(), traffic(most=8))
def test_the_compiled_loop_is_its_source(chosen, limits, requests):
    compiled, _ = play(service_of(**chosen), requests, **limits)
    with ExitStack() as stack:
        for change in plain_python():
            stack.enter_context(change)
        stack.enter_context(np.errstate(over="ignore"))  # whole numbers wrap around, as compiled ones do
        plain, _ = play(service_of(**chosen), requests, **limits)
    assert digest(compiled) == digest(plain)


@pytest.mark.slow
def test_no_index_leaves_its_table(tmp_path):
    """Compiled once more with every index checked, in a copy of the sources."""
    root = Path(__file__).parents[2]
    for part in ("src", "tools/compile"):
        shutil.copytree(root / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "_compiled*"))
    env = os.environ | {"ORRERY_CHECK_BOUNDS": "1", "PYTHONPATH": str(tmp_path / "src")}
    rooms = ["engine", "execution", "kernels", "serving"]
    subprocess.run([sys.executable, str(tmp_path / "tools/compile/build.py"), *rooms], env=env, check=True)
    file = Path(__file__).parent / "test_simulation_properties.py"
    done = subprocess.run([sys.executable, "-m", "pytest", str(file)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]


def test_new_requests_are_seen_after_so_many_decode_steps():
    """The first request comes alone, and its prompt is computed. The second comes while its first decode step runs.
    Seen at every step it is admitted when that step ends, seen every third when the third one does: when a twin of the
    first that makes so many tokens more than its first is done. After a hundred steps nobody would look before the
    first is done; then at once."""

    def played(outputs, arrivals, interval):
        requests = Requests(
            arrive_s=np.array(arrivals), input_tokens=np.full(len(outputs), 64), output_tokens=np.array(outputs)
        )
        return play(service_of(policy="prefill-first"), requests, recv_interval=interval)[0].when

    alone = [played([n], [0.0], 1)[0] for n in range(1, 11)]
    ends_s = [x[k.FINISH] for x in alone]  # of the prompt, of the first decode step, …
    during_the_first = (ends_s[0] + ends_s[1]) / 2 - alone[0][k.ENTER]
    for interval, steps in ((1, 1), (3, 3), (100, 9)):
        both = played([10, 4], [0.0, during_the_first], interval)
        assert both[1, k.ADMITTED_S] == ends_s[steps], interval

"""From a service to the loop's tables: machines, lanes, links and splits of deployments that a test makes up."""

from dataclasses import dataclass, fields, replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.execution.compression import NOTHING
from orrery.execution.memory import Memory
from orrery.execution.shard import Cache
from orrery.execution.surface._kernel import CHANNELS, MATRIX_WORK, MEMORY_WORK, TIME, Surface
from orrery.serving.live.world import sizes_of
from orrery.serving.requests import Requests
from orrery.serving.simulation import assemble as assembling
from orrery.serving.simulation import world
from orrery.serving.simulation.assemble import (
    Sizes,
    _add_pool,
    _columns,
    _demand_frac,
    _drawing,
    _first_split,
    _held,
    _in_company,
    _lending_s,
    _link,
    _Lists,
    _send_share,
    _surfaces,
)
from orrery.serving.simulation.prepare import _acceptances, _guess_knob, _table, blocks_of
from orrery.serving.simulation.service import Filling, Pool, Split
from orrery.serving.simulation.simulate import check
from orrery.serving.simulation.tables import _kernel as k


@dataclass(frozen=True)
class Layout:
    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    num_devices: int = 1


@dataclass(frozen=True)
class Deployed:
    """A deployment by what tables are made of."""

    layout: Layout = Layout()
    shares: bool = False
    name: str = "d"
    engine: object = None
    model: object = None
    cluster: object = None


@pytest.fixture
def shards(monkeypatch):
    monkeypatch.setattr(assembling, "has_exchange", lambda d: d.shares)
    monkeypatch.setattr(assembling, "shard", lambda d: SimpleNamespace(stage_share=0.75))
    monkeypatch.setattr(assembling, "_send_share", lambda d: 0.125)


def service(**given):
    usual = {"pools": (), "split": None, "overlaps_sends": False, "speculation": None, "filling": None}
    usual |= {"compression": NOTHING, "is_same_node": True, "is_layerwise": False, "sharing": ""}
    return SimpleNamespace(**(usual | given))


def pool_tables(pools, memory=None, has_answers=True, **given):
    lists, of = _Lists(), service(pools=pools, **given)
    for number in range(len(pools)):
        memories = [memory or SimpleNamespace(max_num_seqs=10, kv_capacity_bytes=100.0)] * len(pools)
        _add_pool(lists, of, number, memories, has_answers=has_answers)
    return lists


def test_independent_ranks_are_machines(shards):
    """Two replicas of three ranks: six machines of one unit, one lane and one pool each."""
    lists = pool_tables([Pool(deployment=Deployed(Layout(dp=3)), replicas=2)])
    assert lists.stages == [1] * 6
    assert lists.unit_lane == [0, 1, 2, 3, 4, 5, 6]
    assert (lists.unit_machine, lists.lane_pool, lists.lane_unit) == ([*range(6)],) * 3
    assert (lists.capacity, lists.max_seqs, lists.twin) == ([100.0] * 6, [10] * 6, [-1] * 6)
    assert (lists.stage_share, lists.send_share) == ([1.0] * 6, [0.0] * 6)
    assert set(lists.lane_role) == {k.BOTH}


def test_ranks_that_share_experts_are_lanes_of_a_unit(shards):
    lists = pool_tables([Pool(deployment=Deployed(Layout(dp=3), shares=True), replicas=2)])
    assert (lists.unit_machine, lists.unit_lane) == ([0, 1], [0, 3, 6])
    assert (lists.lane_unit, lists.lane_pool) == ([0, 0, 0, 1, 1, 1], [0, 1, 2, 3, 4, 5])


def test_batches_of_a_pipeline_are_units_of_a_machine(shards):
    """Two stages: two units share a pool, each with half of the seats; a prompt more is sent where sends overlap."""
    pool = Pool(deployment=Deployed(Layout(pp=2)), replicas=2)
    lists = pool_tables([pool])
    assert (lists.unit_machine, lists.lane_pool, lists.max_seqs) == ([0, 0, 1, 1], [0, 0, 1, 1], [5] * 4)
    assert (lists.stages, lists.stage_share) == ([2, 2], [0.75, 0.75])
    lists = pool_tables([pool], overlaps_sends=True, has_answers=False)
    assert (lists.unit_machine, lists.send_share) == ([0, 0, 0, 1, 1, 1], [0.125, 0.125])
    lists = pool_tables([pool], overlaps_sends=True)
    assert (lists.unit_machine, lists.send_share) == ([0, 0, 1, 1], [0.125, 0.125]), "answers wait for no third batch"
    one = pool_tables([Pool(deployment=Deployed())], overlaps_sends=True)
    assert one.unit_machine == [0]
    narrow = SimpleNamespace(max_num_seqs=1, kv_capacity_bytes=100.0)
    assert pool_tables([pool], narrow).max_seqs == [1] * 4
    odd = SimpleNamespace(max_num_seqs=11, kv_capacity_bytes=100.0)
    assert pool_tables([pool], odd).max_seqs == [5] * 4


def test_a_split_machine_has_a_unit_for_each_phase(shards):
    pools = [Pool(deployment=Deployed(), replicas=2)]
    lists = pool_tables(pools, split=Split())
    assert (lists.unit_machine, lists.lane_pool) == ([0, 0, 1, 1], [0, 0, 1, 1])
    assert lists.lane_role == [k.PROMPTS, k.ANSWERS] * 2
    assert (lists.twin, lists.lane_deployment) == ([1, 0, 3, 2], [0, 1, 0, 1])


def test_pools_of_different_roles(shards):
    pools = [Pool(deployment=Deployed(), role="prompts"), Pool(deployment=Deployed(), role="answers", replicas=2)]
    lists = pool_tables(pools)
    assert lists.lane_role == [k.PROMPTS, k.ANSWERS, k.ANSWERS]
    assert lists.lane_deployment == [0, 1, 1]


def test_bytes_of_sequences_by_blocks():
    """A sequence of 33 tokens is three blocks of 16, and two more; half of 3 bytes a token, rounded."""

    cache = Cache(bytes_per_token=3.01, windows=(), bytes_per_sequence=7.0)
    zeros = dict.fromkeys((f.name for f in fields(Memory)), 0)
    memory = Memory(**(zeros | {"cache": cache}))
    sizes = Sizes(block_tokens=16, longest_prompt_tokens=9, longest_tokens=33, mean_context_tokens=9.0)
    found = _held(service(), [1, 2], [memory], sizes)
    assert found.shape == (2, 6)
    assert found[1].tolist() == [0] + [round(7 + 16 * b * 3.01) for b in range(1, 6)]
    windowed = replace(memory, cache=replace(cache, windows=((8, 2.0),)), window_room_frac=0.5)
    parted = _held(service(), [1], [windowed], sizes)  # 8 of the window are 16 of the room
    assert parted[0].tolist() == [0] + [round(7 + 16 * b * 4.01) for b in range(1, 6)]


def test_sizes_of_requests():
    requests = Requests(arrive_s=np.zeros(2), input_tokens=np.array([10, 30]), output_tokens=np.array([40, 8]))
    found = Sizes.of(requests, 16)
    assert (found.longest_prompt_tokens, found.longest_tokens, found.mean_context_tokens) == (30, 50, 32.0)


def test_sizes_where_requests_are_not_known(monkeypatch):
    """A context of 100,000 in caches of 9,000 and 5,000 tokens; lent ones hold all of them together."""
    memories = tuple(SimpleNamespace(kv_capacity_tokens=t) for t in (9000.0, 5000.0))
    monkeypatch.setattr("orrery.serving.live.world.memories_of", lambda service: memories)
    deployment = SimpleNamespace(model=SimpleNamespace(max_context_tokens=100_000))
    pools = (SimpleNamespace(deployment=deployment, replicas=3), SimpleNamespace(deployment=deployment, replicas=1))
    found = sizes_of(SimpleNamespace(pools=pools, lends_cache=False), 16)
    assert (found.longest_tokens, found.longest_prompt_tokens, found.mean_context_tokens) == (9000, 8999, 2250.0)
    assert sizes_of(SimpleNamespace(pools=pools, lends_cache=True), 16).longest_tokens == 42_000
    assert sizes_of(SimpleNamespace(pools=pools, lends_cache=True), 16).mean_context_tokens == 4096.0
    deployment.model.max_context_tokens = 1
    assert sizes_of(SimpleNamespace(pools=pools, lends_cache=False), 16).longest_tokens == 2


def test_the_share_of_network_time_between_stages(monkeypatch):
    def part(op, time_s, group="network"):
        return SimpleNamespace(op=op, group=group, time_s=np.array([time_s]))

    asked = []

    def step(d, batch):
        asked.append(batch.decode_sequences.tolist())
        return SimpleNamespace(parts=d.engine)

    monkeypatch.setattr(assembling, "step", step)
    monkeypatch.setattr(assembling, "max_num_batched_tokens", lambda d: 300)
    parts = (part("send_recv", 1.0), part("all_reduce", 3.0), part("fetch", 9.0), part("gemm", 9.0, "math"))
    assert _send_share(Deployed(engine=parts)) == 0.25
    assert _send_share(Deployed(engine=parts[2:])) == 0.0
    assert asked[0] == [300]


def test_tables_reach_as_far_as_steps_do(monkeypatch):
    """8 seats with three guesses to check are 32 tokens; the budget of 20 is less, fine-tuning of 50 more; no table is
    longer than 65,536 tokens, and no prompt in it than that."""
    asked = []

    def surface_of(d, **given):
        asked.append(given)
        return d

    monkeypatch.setattr(assembling, "surface_of", surface_of)
    monkeypatch.setattr(assembling, "stacked", lambda found: found)
    monkeypatch.setattr(assembling, "verified_tokens", lambda s: 4)
    sizes = Sizes(block_tokens=16, longest_prompt_tokens=40, longest_tokens=90, mean_context_tokens=9.0)
    found, variants = _surfaces(service(), ["a", "b"], [], sizes, 8, 20)
    assert (found, variants) == (["a", "b"], 1)
    assert asked[0]["most_tokens"] == 20
    assert (asked[0]["most_sequences"], asked[0]["guesses"]) == (8, 0)
    assert (asked[0]["most_prompt_tokens"], asked[0]["most_context_tokens"]) == (20, 90)
    _surfaces(service(speculation=1), ["a"], [], sizes, 8, 20)
    assert (asked[2]["most_tokens"], asked[2]["most_sequences"], asked[2]["guesses"]) == (32, 32, 3)
    _surfaces(service(filling=Filling(step_tokens=50)), ["a"], [], sizes, 8, 20)
    assert (asked[3]["most_tokens"], asked[3]["most_prompt_tokens"]) == (50, 40)
    _surfaces(service(), ["a"], [], sizes, 8, 10**9)
    assert asked[4]["most_tokens"] == 65_536


def test_tables_of_every_split_alone_and_in_company(monkeypatch):
    """Prompts have what answers leave, in order of the parts; the run starts at the first that is named."""
    monkeypatch.setattr(assembling, "surface_of", lambda d, **given: d)
    monkeypatch.setattr(assembling, "stacked", lambda found: found)
    monkeypatch.setattr(assembling, "with_share", lambda d, share: f"{d}{share:g}")
    monkeypatch.setattr(assembling, "_in_company", lambda d, own, other, p, sizes: f"{d}{own:g}/{other:g}{p:d}")
    monkeypatch.setattr(assembling, "_drawing", lambda d, tables, own: (tables, round(own, 9)))
    sizes = Sizes(block_tokens=16, longest_prompt_tokens=40, longest_tokens=90, mean_context_tokens=9.0)
    split = Split(answers_fracs=(0.75, 0.25, 0.5))
    found, variants = _surfaces(service(split=split), ["p", "a"], [], sizes, 8, 20)
    assert variants == 6
    assert found[:4] == [("p0.75", 0.75), ("p0.75/0.251", 0.75), ("p0.5", 0.5), ("p0.5/0.51", 0.5)]
    assert found[6:8] == [("a0.25", 0.25), ("a0.25/0.750", 0.25)]
    assert _first_split(service(split=split)) == 2
    assert _first_split(service()) == 0


def test_a_part_of_the_units_draws_its_part(monkeypatch):
    """A law with a bend of a half: work counts a quarter squared less, so that a quarter of the power is drawn."""
    monkeypatch.setattr(assembling, "step_law", lambda device: SimpleNamespace(concave_power=0.5))
    tables = Surface(*(np.ones((2, CHANNELS)) if i < 4 else np.ones(3) for i in range(11)))
    found = _drawing(Deployed(cluster=SimpleNamespace(device=None)), tables, 0.25)
    assert found.tokens[0, [MATRIX_WORK, MEMORY_WORK, TIME]].tolist() == [0.0625, 0.0625, 1.0]
    assert found.decode_nodes.tolist() == [1.0, 1.0, 1.0]


def test_both_parts_ask_for_the_memory(monkeypatch):
    """Prompts ask for 0.4 of it, answers for 0.8: each gets its share of both, a third and two thirds."""
    demands = {("p", True): 0.4, ("p", False): 0.8}
    shares = []

    def share(d, frac, bandwidth_frac=None):
        shares.append(bandwidth_frac)
        return d

    monkeypatch.setattr(assembling, "with_share", share)
    monkeypatch.setattr(assembling, "_demand_frac", lambda d, prompts, sizes, device: demands["p", prompts])
    d = Deployed(cluster=SimpleNamespace(device=None))
    _in_company(d, 0.5, 0.5, True, None)
    assert shares[-1] == pytest.approx(1 / 3)
    _in_company(d, 0.5, 0.5, False, None)
    assert shares[-1] == pytest.approx(2 / 3)
    demands["p", False] = 0.6
    _in_company(d, 0.5, 0.5, True, None)
    assert shares[-1] is None


def test_what_a_usual_step_asks_of_the_memory(monkeypatch):
    asked = []
    monkeypatch.setattr(assembling, "step", lambda d, batch: batch)

    def demand(device, batch, entry):
        asked.append(batch)
        return 1.5

    monkeypatch.setattr(assembling, "memory_demand_frac", demand)
    sizes = Sizes(block_tokens=16, longest_prompt_tokens=4000, longest_tokens=90, mean_context_tokens=700.4)
    assert _demand_frac(None, True, sizes, None) == 1.0
    _demand_frac(None, False, sizes, None)
    prompts, answers = asked
    assert (prompts.prompt_sequences[0], prompts.prompt_tokens[0], prompts.prompt_context_tokens[0]) == (1, 2048, 2048)
    assert (prompts.decode_sequences[0], prompts.decode_context_tokens[0]) == (0, 0)
    assert (answers.decode_sequences[0], answers.decode_context_tokens[0]) == (64, 700)
    assert (answers.prompt_sequences[0], answers.prompt_tokens[0]) == (0, 0)
    _demand_frac(
        None, True, Sizes(block_tokens=16, longest_prompt_tokens=9, longest_tokens=1, mean_context_tokens=0.1), None
    )
    assert asked[2].prompt_tokens[0] == 9


def test_the_way_to_machines_for_answers(monkeypatch):
    """The slower rate, divided among the holders of a sequence, and the longer latency."""
    links = {"fast": (100.0, 1.0), "slow": (60.0, 5.0), "own": (400.0, 0.5)}

    def between(d, other, same_node, parts=1):
        rate, latency = links[other.name]
        return SimpleNamespace(bandwidth_bytes_per_s=rate, latency_s=latency)

    monkeypatch.setattr(assembling, "link_between", between)
    monkeypatch.setattr(assembling, "holders", lambda d: 4.0)
    own = Deployed(name="own")
    pools = [SimpleNamespace(role="answers", deployment=Deployed(name=n)) for n in ("fast", "slow")]
    assert _link(service(pools=[SimpleNamespace(role="prompts", deployment=own), *pools]), own) == (15.0, 5.0)
    assert _link(service(pools=[SimpleNamespace(role="all", deployment=own)]), own) == (100.0, 0.5)
    # a query of 8 x 2 bytes out and a partial sum back: 32 bytes at 400 bytes/s and 0.5 s, twice in each of 3 layers
    asked = Deployed(name="own", model=SimpleNamespace(hidden_size=8, num_layers=3))
    assert _lending_s(service(pools=[SimpleNamespace(deployment=asked)])) == pytest.approx(3 * 2 * (0.5 + 32 / 400))


def test_a_table_of_named_columns():
    table = _columns(("a", "b", "c"), 2, np.int64, c=[5, 6], a=7)
    assert table.tolist() == [[7, 0, 5], [7, 0, 6]]


# --- before the loop


def engine(**given):
    return SimpleNamespace(**({"block_tokens": 16, "has_prefix_caching": True} | given))


@pytest.mark.parametrize(
    ("shared", "caching", "kept", "expected"),
    [
        (32, None, 1.0, (16, 2)),
        (0, None, 1.0, (16, 0)),
        (24, None, 1.0, (8, 3)),
        (32, False, 1.0, (16, 0)),
        (32, None, 0.5, (16, 0)),
        (8, True, 1.0, (8, 1)),
    ],
)
def test_blocks_of_the_cache_and_of_the_traffic(shared, caching, kept, expected):
    asked = SimpleNamespace(
        pools=(SimpleNamespace(deployment=SimpleNamespace(engine=engine())),),
        prefix_caching=caching,
        compression=SimpleNamespace(kept_tokens_frac=kept),
    )
    assert blocks_of(asked, shared) == expected


def test_rows_of_knobs_are_as_long_as_the_longest():
    assert _table([[1.0], [2.0, 3.0]]).tolist() == [[1.0, 0.0, 0.0], [2.0, 3.0, 0.0]]
    assert _acceptances(service()) == []


@pytest.mark.parametrize(
    ("preemption", "swap", "knobs", "at"),
    [
        ("swap", "encrypted-pipelined", {}, 3),
        ("recompute", "encrypted-pipelined", {}, -1),
        ("swap", "plain-copy", {}, -1),
        ("swap", "encrypted-pipelined", {"hit_frac": 0.5}, -1),
    ],
)
def test_where_a_guess_is_written(preemption, swap, knobs, at):
    assert _guess_knob(SimpleNamespace(preemption=preemption, swap=swap, swap_knobs=knobs)) == at


def test_followers_as_linked_lists():
    """1 and 3 follow 0, 2 follows 1."""
    first, following = world._followers(np.array([-1, 0, 1, 0]))
    assert (first.tolist(), following.tolist()) == ([1, 2, -1, -1], [-1, 3, -1, -1])


def test_requests_reach_the_queue_in_the_order_of_the_front_end():
    """A long prompt takes a tenth of a second a token more, and holds up who comes after it where one thread reads them
    all in; followers are not among them; clients that hold requests back send them in order."""
    requests = Requests(
        arrive_s=np.array([0.0, 1.0, 0.5, 2.0]),
        input_tokens=np.array([30, 5, 5, 1]),
        output_tokens=np.ones(4, np.int64),
        after=np.array([-1, -1, 0, -1]),
    )
    asked = SimpleNamespace(entry_s=lambda tokens: 0.1 * tokens)
    late = replace(requests, arrive_s=np.array([0.0, 2.0, 0.5, 1.0]))
    assert world._order(late, is_capped=False).tolist() == [0, 3, 1]
    assert world._order(late, is_capped=True).tolist() == [0, 1, 3]
    times = world.time_table(asked, requests, has_order=False)
    assert times[:, k.ENTER].tolist() == [3.0, 1.5, 1.0, 2.1]
    times = world.time_table(asked, requests, has_order=True)
    assert times[:, k.ENTER].tolist() == [3.0, 3.0, 1.0, 3.0]
    assert (times[:, k.PRIORITY].tolist(), times[:, k.LAST].tolist()) == ([0.0] * 4, [0.0] * 4)
    assert np.isnan(times[:, k.FIRST]).all()


def test_numbers_from_zero():
    assert [world._distinct(np.array(x, np.int64)) for x in ([], [0], [3, 1], [-1])] == [1, 1, 4, 1]


def test_places_of_adapters_hold_the_most_popular():
    def pool(slots):
        adapters = SimpleNamespace(slots=slots) if slots else None
        return SimpleNamespace(deployment=SimpleNamespace(adapters=adapters))

    table = world._slots(SimpleNamespace(pools=(pool(3), pool(2), pool(0))), 2)
    assert table[:, k.SLOT_ADAPTER].tolist() == [[0, 1], [0, 1]]
    assert table[:, [k.SLOT_REQUESTS, k.SLOT_TURN]].sum() == 0
    assert world._slots(SimpleNamespace(pools=(pool(0),)), 2).shape == (2, 3, 0)


def test_too_many_shared_blocks_are_refused():
    assembled = SimpleNamespace(capacity=np.array([10, 10]), host_capacity=np.array([0, 0]))

    def asked(ids):
        return SimpleNamespace(prefix_ids=np.array([ids - 1]), count=1)

    with pytest.raises(ScenarioError, match="200,000,001 shared blocks on 2 replicas"):
        world._memory(assembled, asked(200_000_001), 1)
    assert world._memory(assembled, asked(3), 1).num_ids == 3
    assert world._memory(assembled, asked(3), 0).num_ids == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input_tokens": np.array([1, 0])}, "input_tokens: got 0"),
        ({"arrive_s": np.array([-1.0, 0.0])}, "finite"),
        ({"arrive_s": np.array([1.0, 0.0])}, "order"),
        ({"arrive_s": np.array([1.0, np.inf])}, "finite"),
        ({"after": np.array([-1, 1])}, "follow"),
    ],
)
def test_what_no_engine_could_serve(change, says):
    usual = {"arrive_s": np.zeros(2), "input_tokens": np.array([1, 1]), "output_tokens": np.array([1, 1])}
    check(Requests(**usual))
    check(Requests(**(usual | {"after": np.array([-1, 0]), "arrive_s": np.array([5.0, 1.0])})))
    with pytest.raises(ScenarioError, match=says):
        check(Requests(**(usual | change)))

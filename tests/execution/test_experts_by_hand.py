"""Experts beside a device: shares of host, link and cache, passes of a cached host, ways of placed tokens, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.experts import placed as placement
from orrery.execution.experts.host_cache import HostCached, bound_by, finite_s, limit_tokens_per_s, phased_s, played
from orrery.execution.experts.hybrid import Shares, fixed, greedy
from orrery.execution.experts.offloaded import Machine, _bound_s, _Cache, _counts, _shared, _shares, split_s
from orrery.execution.experts.placed import way_scales

# --- a host that keeps the cache: 8 s of weights, 0.01 s a token of products, 0.002 s a cached token

HOST = HostCached(
    weights_s=8.0,
    products_s=lambda tokens: 0.01 * tokens,
    attention_s_per_tokens=0.002,
    cache_tokens=1200.0,
    input_tokens=20,
    output_tokens=8,
    block_tokens=4,
    prompt_attention_s_per_tokens=0.001,
)


def test_a_pass_takes_the_longest_of_link_device_and_host():
    assert HOST.mean_tokens == 20 + 4 + 2
    assert HOST.pass_s(100, 10, 100) == 8
    assert HOST.pass_s(1000, 10, 100) == pytest.approx(0.01 * 1010 + 0.001 * 1000)
    assert HOST.pass_s(100, 10, 10000) == 20


def test_rates_and_times_of_runs():
    """1200 tokens hold 50 sequences of 24; 6.25 enter a pass. 100 requests: 1200 / 26 sequences, an eighth of them a
    pass, at 8 s a pass throughout."""
    assert limit_tokens_per_s(HOST) == 50 / 8
    sequences = 1200 / 26
    passes = 100 / (sequences / 8) - 8
    assert finite_s(HOST, 100) == pytest.approx(passes * 8 + 8 * (8 + 8))
    few = finite_s(HOST, 4)  # 4 sequences, half of one a pass
    assert few == pytest.approx((4 / 0.5 - 8) * 8 + 8 * 16)
    quick = HostCached(**{name: getattr(HOST, name) for name in HostCached.__slots__} | {"weights_s": 0.0})
    entering = sequences / 8
    full = max(0.01 * (entering * 20 + sequences) + 0.001 * entering * 20, 0.002 * sequences * 24)
    filling = max(0.01 * (entering * 20 + sequences / 2) + 0.001 * entering * 20, 0.002 * sequences / 2 * 24)
    draining = max(0.01 * sequences / 2, 0.002 * sequences / 2 * 24)
    assert finite_s(quick, 100) == pytest.approx((100 / entering - 8) * full + 8 * (filling + draining))
    prompts = 6.25 * 20
    expected = max(0.01 * (prompts + 50) + 0.001 * prompts, 0.002 * 1200)
    assert limit_tokens_per_s(quick) == pytest.approx(50 / expected)


def test_what_binds_an_endless_run():
    base = {name: getattr(HOST, name) for name in HostCached.__slots__}
    assert bound_by(HOST) == "link to the host"
    assert bound_by(HostCached(**base | {"weights_s": 0.1})) == "host memory"
    assert bound_by(HostCached(**base | {"weights_s": 0.1, "attention_s_per_tokens": 1e-6})) == "device"


def test_prompts_first_and_padded():
    """Rooms of 30 + 8 tokens: 31 requests at once. Their 930 prompt tokens, then 7 passes over 31 x 31 to 31 x 37."""
    first = max(8, 0.01 * 930 + 0.001 * 930)
    later = sum(max(8, 0.01 * 31, 0.002 * 31 * (30 + age)) for age in range(1, 8))
    assert phased_s(HOST, 62, 30) == pytest.approx(2 * (first + later))
    assert phased_s(HOST, 10, 30) == pytest.approx(1 * (8 + 7 * 8))


def test_a_run_played_pass_by_pass():
    """Two requests of 4 tokens and 2 answers, both in the cache: 4 prompt tokens enter a pass: 4; then 4 and the first
    one's token; then a token of each, and the first ends; then the last. A second a token."""
    work = []

    def products(tokens):
        work.append(tokens)
        return 1.0 * tokens

    small = HostCached(
        weights_s=0.5,
        products_s=products,
        attention_s_per_tokens=0.0,
        cache_tokens=16.0,
        input_tokens=4,
        output_tokens=2,
        block_tokens=1,
    )
    total = played(small, np.array([4, 4]))
    assert (work, total) == ([4, 5, 2, 1], 12)


# --- sharing a layer out

SHARES = Shares(device_s=lambda n: 1.0, host_s=lambda n: 3.0 * n, load_s=4.0)


def test_each_side_computes_its_own():
    work = {0: 2, 1: 1, 2: 5}
    assert fixed(work, frozenset({0, 2}), SHARES).time_s == 3
    assert fixed(work, frozenset({0, 1, 2}), SHARES).time_s == 3
    assert fixed(work, frozenset(), SHARES).time_s == 24


def test_the_rest_is_dealt_out_one_expert_at_a_time():
    """Loads 5, 2 and 1 are missing. The host takes 1 (3 s against 5 over the link); then 2 would end at 9, the largest
    over the link at 5: it comes; then 2 ends at 9 on the host as over the link (4 + 4 + 1): the host takes it."""
    done = greedy({0: 5, 1: 2, 2: 1}, frozenset(), SHARES)
    assert (done.time_s, done.loaded, done.link_s) == (9, (0,), 4)


def test_an_idle_host_helps_with_the_smallest_while_that_is_sooner_done():
    """Six on the device; the host takes one of one token in 3 s while the device does 5; a second would end at 6."""
    done = greedy(dict.fromkeys(range(6), 1), frozenset(range(6)), SHARES)
    assert done.time_s == 5
    four = greedy(dict.fromkeys(range(4), 1), frozenset(range(4)), SHARES)
    assert four.time_s == 3
    three = greedy(dict.fromkeys(range(3), 1), frozenset(range(3)), SHARES)
    assert three.time_s == 3  # 3 s on the host are not sooner


# --- a device that loads experts

MACHINE = Machine(
    num_experts=4,
    experts_per_token=2,
    expert_bytes=76.0,
    expert_parameters=50.0,
    link_bytes_per_s=10.0,
    other_s=1.0,
)


def rule(**more):
    settings = {
        "computes": False,
        "schedule": "fixed",
        "cache": "lru",
        "prefetch_frac": 0.0,
        "repeat_frac": 0.5,
        "host_memory_bytes_per_s": 10.0,
        "host_flops_per_s": 20.0,
        "kept_frac": 0.5,
    }
    return SimpleNamespace(**(settings | more))


def test_seconds_of_an_expert_on_either_side():
    """76 bytes at 76 % of 10 a second take 10 s to read; 2 x 50 operations a token at 20 a second take 5 s."""
    from orrery.execution.host_rates import HOST_MEMORY_FRAC

    shares = _shares(rule(computes=True), MACHINE, 2.0, 3.0)
    read_s = 76 / (10 * HOST_MEMORY_FRAC)
    assert [shares.host_s(n) for n in (1, 2, 3, 4)] == [max(read_s, 5 * n) for n in (1, 2, 3, 4)]
    assert (shares.device_s(7), shares.load_s) == (2, 3)
    assert _shares(rule(), MACHINE, 2.0, 3.0).host_s(1) == np.inf


def test_missing_experts_come_one_after_the_other_the_fullest_first():
    """Kept experts take 2 s; loads of 3 s arrive at 3 and 6: 2 -> 3 + 1 -> 6 + 1."""
    shares = Shares(device_s=lambda n: 1.0, host_s=lambda n: np.inf, load_s=3.0)
    done = _shared(rule(), {0: 1, 1: 1, 2: 4, 3: 9}, frozenset({0, 1}), shares)
    assert (done.time_s, done.loaded, done.link_s) == (7, (3, 2), 6)
    slow = Shares(device_s=lambda n: 5.0, host_s=lambda n: np.inf, load_s=3.0)
    assert _shared(rule(), {0: 1, 1: 1, 2: 4, 3: 9}, frozenset({0, 1}), slow).time_s == 20
    assert _bound_s(rule(), {0: 1, 1: 1, 2: 4, 3: 9}, frozenset({0, 1}), shares) == 6
    assert _bound_s(rule(), {0: 1, 1: 1, 2: 4, 3: 9}, frozenset({0, 1}), slow) == 10


def test_the_bound_lets_host_and_link_end_together():
    """1, 2 and 4 s on the host, 2 s a load: the first and 3/4 of the second against 1/4 and the third: 2.5."""
    assert split_s([1.0, 2.0, 4.0], 2.0) == 2.5
    assert split_s([1.0, 1.0], 100.0) == pytest.approx(1 + 99 / 101)
    assert split_s([3.0], 1.0) == 0.75
    assert split_s([], 1.0) == 0
    both = Shares(device_s=lambda n: 0.0, host_s=lambda n: float(n), load_s=2.0)
    assert _bound_s(rule(computes=True), {0: 4, 1: 1, 2: 2}, frozenset(), both) == 2.5


def test_caches_by_use_and_by_score(monkeypatch):
    from orrery.execution.experts import offloaded

    monkeypatch.setattr(offloaded, "room_of", lambda rule, num_experts: 2)
    none = np.zeros((1, 4))
    used = _Cache(rule(cache="lru"), 1, np.array([3, 1, 0, 2]))
    assert used.held == {1, 3}
    used.use({3: 1}, none, ())
    used.use({0: 1}, none, (0,))
    assert used.held == {0, 3}  # 1 was not used
    scored = _Cache(rule(cache="score"), 1, np.array([3, 1, 0, 2]))
    scored.use({1: 1}, np.array([[0.0, 0.6, 0.0, 0.4]]), ())
    assert scored.worth.tolist() == pytest.approx([0, 0.3, 0, 0.2])  # half of what a router gives its two likeliest
    scored.use({0: 1}, np.array([[0.8, 0.2, 0.0, 0.0]]), (0,))
    assert scored.worth.tolist() == pytest.approx([0.4, 0.25, 0, 0.1])
    assert scored.held == {0, 1}
    still = _Cache(rule(cache="static"), 1, np.array([3, 1, 0, 2]))
    still.use({0: 2}, none, (0,))
    assert still.held == {1, 3}
    ahead = _Cache(rule(cache="lru"), 1, np.array([3, 1, 0, 2]))
    ahead.use({3: 1}, none, ())
    ahead.fetch(np.array([5, 9, 2, 0]), 1.0, np.random.default_rng(0))
    assert ahead.held == {0, 3}  # of those away the one that most tokens want


def test_counts_of_tokens_repeat_in_part():
    """A repeat of (almost) 1 keeps every score: the two best experts of each of 3 tokens; all experts where all are."""
    random, chosen = np.random.default_rng(0), np.full(4, 0.5)
    scores = [np.array([[9.0, 8, 0, 0], [0, 9, 8, 0], [0, 0, 8, 9]])]
    kept = rule(repeat_frac=1.0)
    counts, probabilities = _counts(random, kept, chosen, 3, 2, scores, 0)
    assert counts.tolist() == [1, 2, 2, 1]
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(3))
    assert probabilities[0, 0] / probabilities[0, 1] == pytest.approx(np.e), "scores of 9 and 8"
    assert _counts(random, kept, chosen, 3, 4, scores, 0)[0].tolist() == [3, 3, 3, 3]
    assert _counts(random, kept, np.array([1e-30, 1, 1, 1]), 3, 2, scores, 0)[0][0] == 0
    drawn, mean = _counts(random, kept, np.array([0.0, 1.0, 0.0, 1.0]), 100, 2, [], 0)
    assert drawn.tolist() == [0, 100, 0, 100]
    assert mean.tolist() == [[0, 0.5, 0, 0.5]]


# --- tokens that stay with their experts


@pytest.mark.parametrize(
    ("ranks", "per_node", "between", "within"),
    [
        (8, 4, 0.2 * 8 / 4, 0.3 * 4 / 3),  # half of an all-to-all's message leaves the node; three quarters the device
        (4, 4, 0.0, 0.3 * 4 / 3),
        (4, 8, 0.0, 0.3 * 4 / 3),
        (8, 1, 0.2 * 8 / 7, 0.0),
    ],
)
def test_shares_of_a_plain_exchange(ranks, per_node, between, within):
    found = SimpleNamespace(leaves_device_frac=0.5, leaves_node_frac=0.2)
    assert way_scales(found, ranks, per_node) == pytest.approx((between, within))


def test_what_the_fullest_rank_computes(monkeypatch):
    from orrery.execution.batch import Batch

    batch = Batch(
        prompt_sequences=np.array([2]),
        prompt_tokens=np.array([101]),
        prompt_context_tokens=np.array([110]),
        decode_sequences=np.array([7]),
        decode_context_tokens=np.array([50]),
    )

    def crowd(ratio):
        monkeypatch.setattr(placement, "placed", lambda deployment: ratio and SimpleNamespace(crowd_ratio=ratio))
        return placement.crowded(None, batch)

    full = crowd(1.5)
    assert (full.prompt_tokens, full.prompt_context_tokens, full.decode_sequences) == (152, 152, 11)
    assert crowd(1.05).prompt_context_tokens == 110
    assert crowd(1.0) is batch
    assert crowd(None) is batch


def test_the_fullest_rank_of_layers_in_order():
    """0.7 and 0.3, then 0.4 and 0.6, over halves: 1.4 and 1.2."""
    layers = ((0.5, 0.2, 0.2, 0.1), (0.1, 0.3, 0.4, 0.2))
    assert placement._in_order_ratio(layers, 2) == pytest.approx(1.3)
    law = SimpleNamespace(layers=layers)

    def deployment(ep=2, copies=0, law=law):
        layout = SimpleNamespace(ep=ep, pp=1)
        return SimpleNamespace(
            expert_loads=law,
            layout=layout,
            num_redundant_experts=copies,
            expert_placement="in-order",
            expert_routes=None,
        )

    assert placement.busiest_ratio(deployment()) == pytest.approx(1.3)
    assert placement.busiest_ratio(deployment(ep=1)) == 1
    assert placement.busiest_ratio(deployment(copies=2)) == 1
    assert placement.busiest_ratio(deployment(law=None)) == 1

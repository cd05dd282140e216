"""Schedules, rows of servers, starts, sums and games of a fleet, each played through by hand on a few numbers."""

from dataclasses import asdict
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import OutOfRange
from orrery.catalog.devices import get_device
from orrery.execution.memory import Infeasible
from orrery.fleet import stages
from orrery.fleet.decentral import COMPRESSORS
from orrery.fleet.decentral.saddle import Game, Path, compressed, extragradient, game
from orrery.fleet.fabric import num_switches
from orrery.fleet.federated import FEDERATED
from orrery.fleet.federated.federation import Federation, History, staleness_weight
from orrery.fleet.mix import ReplicaRates, alone, buckets, cheapest
from orrery.fleet.ownership import Owned, Terms
from orrery.fleet.power import POWER_CAPS
from orrery.fleet.power import row as row_module
from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.power.oversubscribe import Tolerance, is_within, late_frac
from orrery.fleet.power.phases import Phases, clocked
from orrery.fleet.power.row import Drawn, Row, run
from orrery.fleet.reduction import HostedNode, host_reduce, memory_passes, ring_reduce
from orrery.network.traffic import double_tree_ratio

STAY = Clocks()


class Clients:
    """Client i adds i + 1 to the weights in each step; the server is as good as its weights are large."""

    seed = 0

    def __init__(self, step_s, run_s):
        self.step_s, self.run_s, self.num_clients = step_s, run_s, len(step_s)

    def start(self):
        return np.zeros(1)

    def trained(self, client, weights, num_steps, draw):
        return weights + num_steps * (client + 1.0)

    def accuracy(self, weights):
        return float(weights[0])


def played(name, step_s, run_s, **knobs):
    technique = FEDERATED.get(name)
    found = technique.rule(Clients(step_s, run_s), technique.knobs(**knobs))
    return found.time_s.tolist(), found.accuracy_frac.tolist()


def test_an_average_round_is_the_mean_of_all():
    """Ten steps of the slower client last 20 s; the mean of 10 and 20 is 15."""
    assert played("federated-average", (1.0, 2.0), 45.0, num_steps=10) == ([0, 20, 40], [0, 15, 30])
    assert played("federated-average", (1.0, 2.0), 40.0, num_steps=10)[0] == [0, 20, 40]


def test_an_asynchronous_server_mixes_by_age():
    """Client 0 comes at 10, 20 and 30 s and is half taken: 5, 10, 15; client 1 comes three versions late: an eighth."""
    found = played("federated-async", (1.0, 3.0), 30.0, num_steps=10, mix_frac=0.5, age_power_ratio=1.0)
    assert found == ([0, 10, 20, 30, 30], [0, 5, 10, 15, 15.625])


def test_compass_lets_clients_arrive_together():
    """Client 0 opens with the most steps, until 10 s, in which client 1 takes five: (10 x 1 + 5 x 2) / 2."""
    knobs = {"num_least": 2, "num_most": 10, "age_power_ratio": 1.0}
    assert played("federated-compass", (1.0, 2.0), 13.0, **knobs) == ([0, 10], [0, 10])


def test_compass_gives_a_slow_client_a_group_that_the_fast_one_joins():
    """One step of 8 s is too few by 10 s, so client 1 takes the two that end before client 0's next turn could, at
    16 s; client 0 is taken in alone at 10 s, 10 / 2, and joins with six: (6 x 1 + 2 x 2 / 2) / 2 more, as client 1
    began a version before."""
    knobs = {"num_least": 2, "num_most": 10, "age_power_ratio": 1.0}
    assert played("federated-compass", (1.0, 8.0), 17.0, **knobs) == ([0, 10, 16], [0, 5, 9])


def test_knobs_of_schedules_and_caps():
    assert asdict(FEDERATED.get("federated-average").knobs()) == {"num_steps": 100}
    usual = {"num_steps": 100, "mix_frac": 0.9, "age_power_ratio": 0.5}
    assert asdict(FEDERATED.get("federated-async").knobs()) == usual
    usual = {"num_least": 20, "num_most": 100, "age_power_ratio": 0.5}
    assert asdict(FEDERATED.get("federated-compass").knobs()) == usual
    usual = {"threshold_frac": 0.89, "release_frac": 0.05, "clock_ratio": 0.787}
    assert asdict(POWER_CAPS.get("cap-everyone").knobs()) == usual
    assert asdict(POWER_CAPS.get("cap-two-thresholds").knobs()) == {
        "first_frac": 0.80,
        "second_frac": 0.89,
        "release_frac": 0.05,
        "low_first_ratio": 0.904,
        "low_second_ratio": 0.787,
        "high_second_ratio": 0.926,
    }
    assert asdict(COMPRESSORS.get("send-largest").knobs()) == {"kept_frac": 0.1}


def test_a_local_step_goes_down_the_softmax():
    """Two classes at even odds: a point of class 0 pulls its weight up by half the learning ratio."""
    split = SimpleNamespace(rows=np.array([[1.0]]), labels=np.array([0]))
    data = SimpleNamespace(num_classes=2, train=split, test=split)
    one = Federation(data=data, parts=(split,), step_s=(1.0,), learning_ratio=0.1, batch=2, run_s=1.0)
    assert (one.num_clients, one.start().tolist()) == (1, [[0.0, 0.0]])
    found = one.trained(0, one.start(), 1, np.random.default_rng(0))
    assert found.tolist() == [[pytest.approx(0.05), pytest.approx(-0.05)]]
    assert one.accuracy(found) == 1.0
    assert (staleness_weight(0, 2.0), staleness_weight(1, 2.0)) == (1.0, 0.25)
    looks = History(time_s=np.arange(20.0), accuracy_frac=np.arange(20.0) / 20)
    assert looks.final_frac == pytest.approx(0.925)
    assert (looks.reached_s(0.5), looks.reached_s(1.0)) == (10.0, inf)


def served(clock_ratio):
    """Prompts of 2 s at 100 W, answers of 4 s at 50 W; at half the clock 4 s at 70 W and no change."""
    return Phases(
        prompt_s=2.0 / clock_ratio, prompt_w=40.0 + 60.0 * clock_ratio, decode_s=4.0, decode_w=50.0, idle_w=10.0
    )


def row(**given):
    usual = {"num_servers": 2, "limit_w": 100.0, "busy_frac": 0.5, "peak_to_trough_ratio": 2.0, "run_s": 10.0}
    usual |= {"low_priority_frac": 0.5, "tick_s": 1.0, "reading_s": 1.0, "delay_s": 2.0}
    return Row(**(usual | given))


@pytest.fixture
def arrivals(monkeypatch):
    def come(*at):
        table = np.zeros((10, 2), dtype=np.int64)
        for tick, server in at:
            table[tick, server] += 1
        monkeypatch.setattr(row_module, "_arrivals", lambda *_: table)

    return come


def test_a_batch_passes_through_its_phases(arrivals):
    """It begins at the end of its tick: 2 s of prompts, 4 s of answers, over at 7 s. The other server idles."""
    arrivals((0, 0))
    found = run(row(), served, lambda reading: STAY)
    assert found.drawn_w.tolist() == [110, 110, 60, 60, 60, 60, 20, 20, 20, 20]
    assert (found.high_s.tolist(), found.low_s.tolist(), found.num_brakes) == ([7.0], [], 2)


def test_batches_of_a_server_wait_for_each_other(arrivals):
    arrivals((0, 1), (1, 1))
    found = run(row(run_s=10.0), served, lambda reading: STAY)
    assert found.drawn_w.tolist() == [110, 110, 60, 60, 60, 60, 110, 110, 60, 60]
    assert found.low_s.tolist() == [7.0]  # every second server is of low priority


def test_new_clocks_come_into_force_after_their_delay(arrivals):
    arrivals((0, 1))
    readings = []

    def rule(reading):
        readings.append(reading)
        return Clocks(low_ratio=0.5)

    found = run(row(), served, rule)
    # a quarter of the prompt is left after 3 s, then a second more
    assert found.drawn_w.tolist() == [110, 110, 80, 60, 60, 60, 60, 20, 20, 20]
    assert found.low_s.tolist() == [8.0]
    assert readings[0] == Reading(drawn_frac=1.1, clocks=STAY)
    assert readings[1].clocks == Clocks(low_ratio=0.5)  # what was already asked for
    assert len(readings) == 10
    readings.clear()
    run(row(reading_s=4.0), served, rule)
    assert len(readings) == 3


def test_half_ticks_and_priorities():
    assert row_module._is_low(row(num_servers=4, low_priority_frac=0.5)).tolist() == [False, True, False, True]
    assert row_module._is_low(row(num_servers=3, low_priority_frac=0.34)).tolist() == [False, False, True]
    assert row_module._is_low(row(low_priority_frac=1.0)).tolist() == [True, True]
    came = row_module._arrivals(row(num_servers=40, run_s=400.0), 5.0)
    assert came.shape == (400, 40)
    assert came[180:220].mean() == pytest.approx(0.1, rel=0.2)  # half of its time, 5 s a batch
    assert np.concatenate([came[:40], came[-40:]]).mean() == pytest.approx(0.05, rel=0.25)


def test_a_lower_clock_by_hand():
    """Half the clock takes 0.8 of the voltage: 0.5 x 0.64 of what is drawn above idle."""
    device = get_device("h100-sxm")
    half = clocked(device, 0.5)
    assert half.vector_flops_per_s == device.vector_flops_per_s / 2
    assert half.compute_clock_hz == device.compute_clock_hz / 2
    assert half.dense_flops_per_s["bf16"] == device.dense_flops_per_s["bf16"] / 2
    span_w = device.power_limit_w - device.idle_power_w
    assert half.power_limit_w - device.idle_power_w == pytest.approx(0.32 * span_w)
    assert clocked(device, 1.0).power_limit_w == pytest.approx(device.power_limit_w)


def test_caps_start_above_their_threshold_and_end_below_it():
    two, every = POWER_CAPS.get("cap-two-thresholds"), POWER_CAPS.get("cap-everyone")
    lowered = Clocks(low_ratio=0.904)
    lowest = Clocks(low_ratio=0.787, high_ratio=0.926)

    def capped(technique, drawn, clocks):
        return technique.rule(Reading(drawn_frac=drawn, clocks=clocks), technique.knobs())

    assert [capped(two, d, STAY) for d in (0.80, 0.81, 0.89, 0.90)] == [STAY, lowered, lowered, lowest]
    assert [capped(two, d, lowest) for d in (0.85, 0.83, 0.76, 0.74)] == [lowest, lowered, lowered, STAY]
    both = Clocks(low_ratio=0.787, high_ratio=0.787)
    assert [capped(every, d, STAY) for d in (0.89, 0.90)] == [STAY, both]
    assert [capped(every, d, both) for d in (0.85, 0.83)] == [both, STAY]


def test_how_late_batches_may_be():
    def drawn(*low_s):
        return Drawn(drawn_w=np.zeros(1), low_s=np.array(low_s), high_s=np.array([]), num_brakes=0)

    assert late_frac(np.array([2.0, 4.0]), np.array([2.0, 2.0]), 50.0) == 0.5
    assert late_frac(np.array([]), np.array([1.0]), 50.0) == late_frac(np.array([1.0]), np.array([]), 50.0) == 0.0
    ends = Tolerance(low_p50_frac=0.5, low_p99_frac=0.99, high_p50_frac=0.0, high_p99_frac=0.0)
    assert is_within(drawn(2.0, 4.0), drawn(2.0, 2.0), ends)
    assert not is_within(drawn(2.0, 4.2), drawn(2.0, 2.0), ends)
    assert not is_within(drawn(1.0, 4.2), drawn(2.0, 2.0), ends)  # far out


def test_fat_trees_by_hand():
    """Half of 4 ports down: 8 endpoints on four leaves and two spines; 9 to 16 take three layers: two of them of
    leaves' number, and a top of half as many ports."""
    assert num_switches(8, 4, 2) == 6
    assert num_switches(7, 4, 2) == 6
    assert num_switches(3, 4, 2) == 3
    assert num_switches(16, 4, 3) == 20
    assert num_switches(5, 4, 3) == 8
    for wrong, says in (((9, 4, 2), "hold 8"), ((17, 4, 3), "hold 16"), ((8, 4, 4), "write 2 or 3")):
        with pytest.raises(OutOfRange, match=says):
            num_switches(*wrong)


def test_owning_by_hand():
    terms = Terms(life_s=100.0, upkeep_frac=0.5, cooling_ratio=1.5, electricity_usd_per_j=0.01)
    assert Owned(name="x", price_usd=200.0, power_w=10.0).usd_per_s(terms) == pytest.approx(3.0 + 0.15)


def node(**given):
    usual = {"num_devices": 4, "bus_bytes_per_s": 60.0, "num_devices_per_port": 2, "port_bytes_per_s": 400.0}
    usual |= {"host_memory_bytes_per_s": 1300.0, "card_bytes_per_s": 100.0, "peer_bytes_per_s": 30.0, "step_s": 0.5}
    return HostedNode(**(usual | given))


def test_a_sum_through_the_host_by_hand():
    """One machine: 3 x 4 + 1 passes of the host's memory leave 100 B/s, a port shared by two both ways 100, the bus
    60. Two machines: the trees' ratio on the card, and log2(2) steps up and down."""
    assert memory_passes(4, 1) == 13.0
    found = host_reduce(node(), 1, 120.0)
    assert (found.time_s, found.pace_bytes_per_s, found.bound_by) == (2.0, 60.0, "bus")
    assert found.bandwidth_bytes_per_s(120.0) == 60.0
    assert host_reduce(node(port_bytes_per_s=80.0), 1, 120.0).pace_bytes_per_s == 20.0
    assert host_reduce(node(host_memory_bytes_per_s=130.0), 1, 120.0).time_s == 12.0
    trees = double_tree_ratio(5)
    assert memory_passes(4, 5) == pytest.approx(13 + 3.5 * trees)
    slow = host_reduce(node(card_bytes_per_s=10.0), 5, 120.0)
    assert slow.bound_by == "network card"
    assert slow.time_s == pytest.approx(12 * trees + 6 * 0.5)  # log2(5) is rounded up to 3


def test_one_ring_by_hand():
    """Four devices send 3/2 of the buffer in 6 steps; eight on two machines 7/4 in 14, from device to card."""
    found = ring_reduce(node(), 1, 120.0)
    assert (found.pace_bytes_per_s, found.time_s, found.bound_by) == (40.0, 3.0 + 3.0, "bus")
    far = ring_reduce(node(), 2, 120.0)
    assert (far.time_s, far.bound_by) == (pytest.approx(120 / 30 * 1.75 + 7.0), "peer to peer")
    assert ring_reduce(node(card_bytes_per_s=15.0), 2, 120.0).time_s == pytest.approx(120 / 15 * 1.75 + 7.0)
    assert ring_reduce(node(port_bytes_per_s=40.0), 1, 120.0).time_s == pytest.approx(120 / 10 * 1.5 + 3.0)


def test_a_mix_by_hand():
    """Buckets of 1.5 and 0.5 replicas of the large type at 4, of 3 and 1 of the small one at 1.5: four small are 6."""
    loads, rent = np.array([[1.5, 3.0], [0.5, 1.0]]), np.array([4.0, 1.5])
    assert alone(loads, rent).tolist() == [8.0, 6.0]
    found = cheapest(loads, rent)
    assert (found.num_replicas.tolist(), found.usd_per_s) == ([0, 4], 6.0)
    assert found.dealt_frac.tolist() == [[pytest.approx(0), pytest.approx(1)]] * 2
    both = cheapest(np.array([[1.2, inf], [inf, 0.3]]), rent)
    assert (both.num_replicas.tolist(), both.usd_per_s) == ([2, 1], 9.5)
    assert cheapest(np.array([[inf, inf]]), rent) is None
    rates = ReplicaRates(requests_per_s=np.array([1.0, 3.0, 2.0]), tpot_s=np.array([0.1, 0.2, 0.3]))
    assert [rates.highest_per_s(s) for s in (0.05, 0.1, 0.2, 1.0)] == [0.0, 1.0, 3.0, 3.0]
    cells = buckets(np.array([1, 10, 11, 1]), np.array([5, 5, 50, 7]), [10])
    assert [(b.input_tokens, b.output_tokens, b.share_frac) for b in cells] == [(4.0, 17 / 3, 0.75), (11.0, 50.0, 0.25)]


def test_stages_take_prompts_and_batches_of_answers(monkeypatch):
    """An answer's batch of n takes 10 + n s, half of it prompts, with tokens n apart; up to 8 fit."""
    memory = SimpleNamespace(max_num_seqs=64, sequences=lambda tokens: 8.0)
    asked = []

    def static_run(deployment, memory, batch, input_tokens, output_tokens):
        asked.append((batch, input_tokens, output_tokens))
        return SimpleNamespace(latency_s=10.0 + batch, prompt_share=0.5, tpot_s=batch)

    monkeypatch.setattr(stages, "memory_of", lambda deployment: memory)
    monkeypatch.setattr(stages, "static_run", static_run)
    assert asdict(stages.prompt_work(None, 100.0)) == {"busy_s": 11.0, "wait_s": 11.0}
    assert asked == [(1.0, 100.0, 1.0)]
    assert asdict(stages.answer_work(None, 10.0, 5.0)) == {"busy_s": 9.0 / 8, "wait_s": 9.0}
    assert asdict(stages.answer_work(None, 10.0, 5.0, slo_tpot_s=4.0)) == {"busy_s": 7.0 / 4, "wait_s": 7.0}
    assert stages.answer_work(None, 10.0, 5.0, slo_tpot_s=0.5) is None
    assert stages.BATCHES == (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    none = Infeasible(what="x", need=2.0, have=1.0, unit="bytes", smallest_change="y")
    monkeypatch.setattr(stages, "memory_of", lambda deployment: none)
    assert stages.prompt_work(None, 1.0) is stages.answer_work(None, 1.0, 1.0) is None
    assert stages.prompt_cache_bytes(None, 1.0) == 0.0


def test_a_stage_stands_where_the_whole_is_cheapest():
    """Dear and fast, cheap and slow; 30 bytes cross a link of 10 B/s where two stages stand apart."""
    fast, slow = stages.Work(busy_s=1.0, wait_s=2.0), stages.Work(busy_s=3.0, wait_s=5.0)
    two = [
        stages.Stage(name="a", work={"dear": fast, "cheap": slow}, passed_bytes=30.0),
        stages.Stage(name="b", work={"dear": fast, "cheap": slow}, passed_bytes=70.0),
    ]
    rent = {"dear": 10.0, "cheap": 1.0}

    def placed(limit_s, allowed=("dear", "cheap")):
        found = stages.cheapest(two, rent, 10.0, limit_s, allowed)
        return found and (found.machines, found.usd, found.latency_s)

    assert placed(10.0) == (("cheap", "cheap"), 6.0, 10.0)
    assert placed(9.9)[1:] == (20.0, 4.0)  # one of each takes 2 + 5 + 3 s
    assert placed(9.9, ("cheap",)) is None
    assert placed(3.9) is None


ONE = Game(matrices=np.array([[[1.0]]]), offsets=np.array([[-1.0]]), solution=np.array([1.0]), steepness_ratio=1.0)


def test_extragradient_by_hand():
    """Half steps: 0, 1/4, 7/16 on the way to 1; four whole numbers a step."""
    found = extragradient(ONE, 0.5, 5, 0.4)
    assert found.error_frac.tolist() == [1.0, 0.5625, 0.31640625]
    assert found.num_bits.tolist() == [0.0, 128.0, 256.0]
    assert (found.bits_to(0.5625), found.bits_to(0.1)) == (128.0, inf)
    assert len(extragradient(ONE, 0.5, 2, 0.0).error_frac) == 3
    lost = extragradient(ONE, 100.0, 50, 0.0).error_frac
    assert lost[-1] > 1e6 > lost[-2]
    twice = Game(matrices=2 * ONE.matrices, offsets=2 * ONE.offsets, solution=ONE.solution, steepness_ratio=2.0)
    assert extragradient(twice, 0.5, 5, 0.4).error_frac.tolist() == found.error_frac.tolist()


def test_whole_differences_to_a_reference_that_always_moves_are_extragradient():
    """F(0) travels first, 64 bits both ways; each step sends 32 up and 32 down, and F of the new reference."""
    technique = COMPRESSORS.get("send-all")
    given = {"remembers": False, "step_ratio": 0.5, "num_steps": 2, "until_frac": 0.0}
    found = compressed(ONE, technique, technique.knobs(), move_frac=1.0, **given)
    assert found.error_frac.tolist() == [1.0, 0.5625, 0.31640625]
    assert found.num_bits.tolist() == [64.0, 192.0, 320.0]
    still = compressed(ONE, technique, technique.knobs(), move_frac=0.0, **given)
    # the reference stays at 0: half a step from z to z + 1/2, and F(z + 1/2) = z - 1/2: 1/4, then 1/4 + 1/8
    assert still.error_frac.tolist() == [1.0, 0.5625, 0.390625]
    assert still.num_bits.tolist() == [64.0, 128.0, 192.0]


def test_what_was_left_out_comes_with_the_next_message():
    """Of (3, 4) the larger travels; of the rest and the next (3, 4), that is (6, 4), the first."""
    from orrery.fleet.decentral.saddle import _Channel

    technique = COMPRESSORS.get("send-largest")
    given = {"technique": technique, "knobs": technique.knobs(kept_frac=0.5), "draw": np.random.default_rng(0)}
    for remembers, second in ((True, [6.0, 0.0]), (False, [0.0, 4.0])):
        channel = _Channel(remembers=remembers, left_out=np.zeros(2), **given)
        assert channel.send(np.array([3.0, 4.0])).tolist() == [0.0, 4.0]
        assert channel.send(np.array([3.0, 4.0])).tolist() == second
        assert channel.num_bits == 2 * 33


def test_a_drawn_game():
    """Payoffs stand across the diagonal with opposite signs, of steepness one; the weight on it."""
    found = game(3, 2, 0.5, 0.1, seed=4)
    mean = found.matrices.mean(axis=0)
    assert np.diag(mean).tolist() == [0.5] * 4
    assert mean[:2, 2:] == pytest.approx(-mean[2:, :2].T)
    assert np.linalg.norm(mean[:2, 2:], 2) == pytest.approx(1.0)
    assert found.steepness_ratio == pytest.approx(1.25**0.5)
    assert mean @ found.solution + found.offsets.mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-12)
    assert (found.num_workers, found.error(found.solution), found.error(np.zeros(4))) == (3, 0.0, 1.0)
    assert Path(num_bits=np.array([1.0, 2.0]), error_frac=np.array([1.0, 0.5])).bits_to(0.5) == 2.0

"""Pools of their own: what a worker carries, by counting steps; how many of each, by trying every number."""

from dataclasses import dataclass, replace
from itertools import product
from math import inf

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Layout
from orrery.execution.memory import memory_of
from orrery.planner.budget import Budget, Weight
from orrery.planner.goal import Goal, Objectives
from orrery.planner.money import tariff_of
from orrery.planner.pools import Pairing, Worker, best_of_each_layout, decode_rate, pairings, prefill_workers, rank_at
from orrery.planner.space import Candidate, Fixed, Option, Space, candidates
from orrery.serving.clock import steps_of, tick
from orrery.serving.steady import batch_limit
from orrery.serving.workload import Traffic


@dataclass(frozen=True)
class Tariff:
    usd_per_hour: float | None


@dataclass(frozen=True)
class Choice:
    device: object
    tariff: Tariff
    clock_frac: float = 1.0


def worker(requests_per_s, tp=1, usd_per_hour=2.0, device="a"):
    """A worker of so many devices, with nothing else known of it."""
    option = Choice(
        type("Named", (), {"name": device, "power_limit_w": 400.0, "host_power_w": 100.0})(), Tariff(usd_per_hour)
    )
    deployment = type("Laid", (), {"layout": Layout(tp=tp)})()
    candidate = type("Tried", (), {"option": option, "deployment": deployment})()
    return Worker(candidate=candidate, requests_per_s=requests_per_s)


def goal(input_tokens=2000.0, output_tokens=101.0, ttft_s=inf, tpot_s=inf):
    return Goal(
        objectives=Objectives(ttft_s=ttft_s, tpot_s=tpot_s),
        traffic=Traffic(input_tokens=input_tokens, output_tokens=output_tokens),
        max_devices=8,
    )


def candidate(**fixed) -> Candidate:
    device = get_device("h100-sxm")
    option = Option(
        device=device, engine=get_engine("vllm", "", device), tariff=tariff_of(device, None, None), clock_frac=1.0
    )
    space = Space(
        model=get_model("llama-3.1-8b"),
        options=[option],
        max_devices=8,
        fixed=Fixed(weights=("bf16",), kv=("bf16",), max_num_batched_tokens=8192, dp=1, ep=1, **fixed),
    )
    return next(candidates(space))


EIGHT, FOUR = Budget(max_devices=8), Budget(max_devices=4)


def test_two_pools_carry_what_the_slower_one_carries():
    """3 prefill replicas of 2 devices at 4/s and 2 decode replicas of 1 device at 5/s: min(12, 10) on 8 devices."""
    pair = Pairing(prefill=worker(4.0, tp=2, usd_per_hour=3.0), num_prefill=3, decode=worker(5.0), num_decode=2)
    assert pair.weight.num_devices == 8
    assert pair.requests_per_s == 10.0
    assert pair.weight.usd_per_hour == 3 * 2 * 3.0 + 2 * 1 * 2.0
    assert replace(pair, decode=worker(5.0, usd_per_hour=None)).weight.usd_per_hour is None


@pytest.mark.parametrize("rate", [0.0, 7.0, 1000.0])
def test_the_numbers_are_those_that_trying_all_of_them_finds(rate):
    prefill, decode = worker(4.0, tp=2), worker(3.1, tp=1)
    (best,) = pairings([prefill], [decode], Budget(max_devices=11), rate)
    every = [
        Pairing(prefill=prefill, num_prefill=p, decode=decode, num_decode=d)
        for p, d in product(range(1, 12), repeat=2)
        if 2 * p + d <= 11
    ]
    if not rate:  # the most for each device: 3 x 4 = 12 of prefill, 4 x 3.1 = 12.4 of decode, on 10
        assert (
            best.requests_per_s / best.weight.num_devices
            == max(x.requests_per_s / x.weight.num_devices for x in every)
            == 1.2
        )
    elif rate == 7.0:  # 2 x 4 = 8 and 3 x 3.1 = 9.3 on 7 devices; no 6 devices carry 7
        assert (best.num_prefill, best.num_decode) == (2, 3)
        assert best.weight.num_devices == min(x.weight.num_devices for x in every if x.requests_per_s >= rate)
    else:  # nothing carries it: what comes nearest
        assert best.requests_per_s == max(x.requests_per_s for x in every)


def test_no_pair_where_one_phase_alone_takes_every_device():
    assert pairings([worker(4.0, tp=8)], [worker(3.0)], EIGHT) == []


def test_pairs_that_carry_the_rate_come_first_and_the_cheapest_of_them_before():
    cheap, dear = worker(4.0, usd_per_hour=1.0), worker(9.0, usd_per_hour=9.0)
    decode = worker(5.0)
    assert pairings([dear, cheap], [decode], FOUR, 4.0)[0].prefill is cheap  # 1 + 2 $ against 9 + 2 $
    assert pairings([dear, cheap], [decode], FOUR, 9.5)[0].prefill is dear  # two of each, and 4 devices carry it


def test_each_layout_of_a_device_once_by_what_its_devices_carry():
    slow, quick, wide = worker(3.0), worker(4.0), worker(7.0, tp=2)
    assert best_of_each_layout([slow, wide, quick], 8, EIGHT) == [quick, wide]
    assert best_of_each_layout([slow, wide, worker(1.0, device="b")], 8, EIGHT)[-1].requests_per_s == 1.0
    assert best_of_each_layout([slow, wide], 1, EIGHT) == [wide]


@pytest.mark.parametrize(("tp", "pp"), [(1, 1), (2, 1), (1, 2)])
def test_decoding_alone_carries_a_token_of_each_sequence_a_step(tp, pp):
    """n sequences live 100 steps each: n / (100 x step) requests/s, the most over every n that TPOT allows."""
    deployment = candidate(tp=tp, pp=pp).deployment
    memory = memory_of(deployment)
    limit = int(batch_limit(deployment, memory, 2000.0, 101.0))
    n = np.arange(1.0, limit + 1)
    step_s = tick(deployment, steps_of(0.0, 0.0, 0.0, np.maximum(n / pp, 1.0), 2000.0 + 101.0 / 2)).time_s
    free = decode_rate(deployment, memory, 2000.0, 101.0, inf)
    assert 0.97 * (n / (100 * step_s)).max() <= free <= (n / (100 * step_s)).max() * (1 + 1e-12)
    target = float(step_s[limit // 3])
    held = decode_rate(deployment, memory, 2000.0, 101.0, target)
    most = (n / (100 * step_s))[step_s <= target].max()
    assert 0.8 * most <= held <= most * (1 + 1e-12)
    assert held < free
    assert decode_rate(deployment, memory, 2000.0, 101.0, 1e-6) == 0.0


def test_reading_prompts_alone_carries_as_many_as_their_steps_hold():
    """Steps full of prompts follow each other: 8192 tokens are 4.096 prompts of 2,000."""
    one = candidate(tp=1, pp=1)
    (found,) = prefill_workers(goal(), [one])
    step_s = float(tick(one.deployment, steps_of(np.full(1, 4.0), 2000.0, 2000.0, 0.0, 0.0)).time_s[0])
    assert found.requests_per_s == pytest.approx(4 / step_s, rel=0.1)
    (held,) = prefill_workers(goal(ttft_s=0.3), [one])
    assert held.requests_per_s < found.requests_per_s
    assert prefill_workers(goal(ttft_s=1e-3), [one]) == []


def test_where_no_price_is_known_the_fewest_devices_carry_the_rate():
    """4 requests/s: one replica of a device, or one of two devices that each carry more."""
    one, two = worker(4.0, usd_per_hour=None), worker(9.0, tp=2, usd_per_hour=None)
    best = pairings([two, one], [worker(5.0, usd_per_hour=None)], FOUR, 4.0)[0]
    assert best.prefill is one
    assert best.weight.num_devices == 2
    known = ranked(5.0, 4, 8.0, 4.0)
    assert known < ranked(5.0, 2, None, 4.0) < ranked(3.9, 1, 0.1, 4.0)
    assert ranked(3.9, 2, None, 4.0) < ranked(3.0, 1, None, 4.0)
    assert ranked(6.0, 2, 9.0, 0.0) < ranked(5.0, 2, 1.0, 0.0)


def ranked(rate, num_devices, usd, demanded, budget=EIGHT):
    return rank_at(rate, Weight(num_devices=num_devices, usd_per_hour=usd, power_w=1.0), budget, demanded)


def test_of_dollars_the_numbers_are_those_that_trying_all_of_them_finds():
    """Prefill at 4/s for 3 $, decode at 3/s for 2 $ an hour, 20 $ in all: 2 + 7 carry 8, 3 + 4 and 3 + 5 carry 12."""
    prefill, decode = worker(4.0, usd_per_hour=3.0), worker(3.0, usd_per_hour=2.0)
    budget = Budget(max_devices=100, max_usd_per_hour=20.0)
    (best,) = pairings([prefill], [decode], budget)
    rates = [min(4.0 * p, 3.0 * d) for p in range(1, 7) for d in range(1, 10) if 3 * p + 2 * d <= 20]
    assert best.requests_per_s == max(rates) == 12.0
    assert (best.num_prefill, best.num_decode) == (3, 4)  # as much as 3 + 5, on fewer
    assert pairings([worker(4.0, usd_per_hour=None)], [decode], budget) == []
    assert ranked(9.0, 9, 18.0, 0.0, budget) < ranked(8.0, 1, 1.0, 0.0, budget)

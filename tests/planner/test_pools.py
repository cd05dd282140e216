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


def worker(requests_per_s, tp=1, usd_per_hour=2.0, device="a"):
    """A worker of so many devices, with nothing else known of it."""
    option = Choice(type("Named", (), {"name": device})(), Tariff(usd_per_hour))
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
    option = Option(device=device, engine=get_engine("vllm", "", device), tariff=tariff_of(device, None, None))
    space = Space(
        model=get_model("llama-3.1-8b"),
        options=[option],
        max_devices=8,
        fixed=Fixed(weights=("bf16",), kv=("bf16",), max_num_batched_tokens=8192, dp=1, ep=1, **fixed),
    )
    return next(candidates(space))


def test_two_pools_carry_what_the_slower_one_carries():
    """3 prefill replicas of 2 devices at 4/s and 2 decode replicas of 1 device at 5/s: min(12, 10) on 8 devices."""
    pair = Pairing(prefill=worker(4.0, tp=2, usd_per_hour=3.0), num_prefill=3, decode=worker(5.0), num_decode=2)
    assert pair.num_devices == 8
    assert pair.requests_per_s == 10.0
    assert pair.usd_per_hour == 3 * 2 * 3.0 + 2 * 1 * 2.0
    assert replace(pair, decode=worker(5.0, usd_per_hour=None)).usd_per_hour is None


@pytest.mark.parametrize("rate", [0.0, 7.0, 1000.0])
def test_the_numbers_are_those_that_trying_all_of_them_finds(rate):
    prefill, decode = worker(4.0, tp=2), worker(3.1, tp=1)
    (best,) = pairings([prefill], [decode], 11, rate)
    every = [
        Pairing(prefill=prefill, num_prefill=p, decode=decode, num_decode=d)
        for p, d in product(range(1, 12), repeat=2)
        if 2 * p + d <= 11
    ]
    if not rate:  # the most for each device: 3 x 4 = 12 of prefill, 4 x 3.1 = 12.4 of decode, on 10
        assert best.requests_per_s / best.num_devices == max(x.requests_per_s / x.num_devices for x in every) == 1.2
    elif rate == 7.0:  # 2 x 4 = 8 and 3 x 3.1 = 9.3 on 7 devices; no 6 devices carry 7
        assert (best.num_prefill, best.num_decode) == (2, 3)
        assert best.num_devices == min(x.num_devices for x in every if x.requests_per_s >= rate)
    else:  # nothing carries it: what comes nearest
        assert best.requests_per_s == max(x.requests_per_s for x in every)


def test_no_pair_where_one_phase_alone_takes_every_device():
    assert pairings([worker(4.0, tp=8)], [worker(3.0)], 8) == []


def test_pairs_that_carry_the_rate_come_first_and_the_cheapest_of_them_before():
    cheap, dear = worker(4.0, usd_per_hour=1.0), worker(9.0, usd_per_hour=9.0)
    decode = worker(5.0)
    assert pairings([dear, cheap], [decode], 4, 4.0)[0].prefill is cheap  # 1 + 2 $ against 9 + 2 $
    assert pairings([dear, cheap], [decode], 4, 9.5)[0].prefill is dear  # two of each, and 4 devices carry it


def test_each_layout_of_a_device_once_by_what_its_devices_carry():
    slow, quick, wide = worker(3.0), worker(4.0), worker(7.0, tp=2)
    assert best_of_each_layout([slow, wide, quick], 8) == [quick, wide]
    assert best_of_each_layout([slow, wide, worker(1.0, device="b")], 8)[-1].requests_per_s == 1.0
    assert best_of_each_layout([slow, wide], 1) == [wide]


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
    best = pairings([two, one], [worker(5.0, usd_per_hour=None)], 4, 4.0)[0]
    assert best.prefill is one
    assert best.num_devices == 2
    known = rank_at(5.0, 4, 8.0, 4.0)
    assert known < rank_at(5.0, 2, None, 4.0) < rank_at(3.9, 1, 0.1, 4.0)
    assert rank_at(3.9, 2, None, 4.0) < rank_at(3.0, 1, None, 4.0)
    assert rank_at(6.0, 2, 9.0, 0.0) < rank_at(5.0, 2, 1.0, 0.0)

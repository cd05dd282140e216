"""The cheapest mix of devices for a trace, against counts worked out by hand."""

import csv

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.mix import Bucket, ReplicaRates
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.mix import MixAnswer, Type, loads_of, plan_mix

pytest.importorskip("highspy")

ASK = {"model": "llama-3.1-8b", "slo": "tpot:120", "tp": 1, "rate": 4}


def trace(tmp_path):
    path = tmp_path / "requests.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["arrival_s", "input_tokens", "output_tokens"])
        rows.writerows([i * 0.5, 100 if i % 4 else 3000, 100] for i in range(40))
    return str(path)


def test_loads_count_replicas_and_what_is_kept_free():
    rates = ReplicaRates(requests_per_s=np.array([1.0, 2.0]), tpot_s=np.array([0.05, 0.2]))
    kind = Type(deployment=None, usd_per_s=1.0, rates=(rates,))
    sizes = (Bucket(input_tokens=1, output_tokens=1, share_frac=0.5),)
    # half of 8 a second; one a second within 0.1 s: 4 replicas; a fifth kept free: 5
    assert loads_of((kind,), sizes, 8.0, 0.1, 0.0).tolist() == [[4.0]]
    assert loads_of((kind,), sizes, 8.0, 0.1, 0.2).tolist() == [[5.0]]
    assert np.isinf(loads_of((kind,), sizes, 8.0, 0.01, 0.0)).all()


def test_one_device_allowed_saves_nothing(tmp_path):
    found = plan_mix(**ASK, device="l4", trace=trace(tmp_path))
    assert isinstance(found, MixAnswer)
    assert found.saving_frac == {"l4": 0.0}
    assert [round(s.share_frac, 2) for s in found.sizes] == [0.75, 0.25]


def test_two_devices_are_never_dearer_than_the_better_alone(tmp_path):
    path = trace(tmp_path)
    rents = {"l4": 0.7, "a100-sxm-80gb": 3.67}
    both = plan_mix(**ASK, device="l4,a100-sxm-80gb", trace=path, rents_usd_per_hour=rents)
    alone = [plan_mix(**ASK, device=d, trace=path, rents_usd_per_hour=rents).mix.usd_per_s for d in rents]
    assert both.mix.usd_per_s <= min(alone) * (1 + 1e-3)
    assert list(both.alone_usd_per_s.values()) == pytest.approx(alone, rel=2e-3)
    assert both.mix.dealt_frac.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_spare_capacity_costs_replicas(tmp_path):
    path = trace(tmp_path)
    plain, spare = (plan_mix(**ASK, device="l4", trace=path, spare_frac=s) for s in (0.0, 0.5))
    assert spare.mix.num_replicas.sum() >= 2 * plain.mix.num_replicas.sum() - 1


def test_what_nothing_serves_in_time_is_a_result(tmp_path):
    found = plan_mix(**{**ASK, "slo": "tpot:1"}, device="l4", trace=trace(tmp_path))
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.have > 0.001


def test_a_mix_needs_a_trace_and_one_limit(tmp_path):
    with pytest.raises(ScenarioError, match="trace: is missing"):
        plan_mix(**ASK, device="l4")
    with pytest.raises(ScenarioError, match="tpot:100"):
        plan_mix(**{**ASK, "slo": "ttft:100"}, device="l4", trace=trace(tmp_path))

"""Work in cheap or clean hours: greedy schedules by hand, laws of the program, and refusals."""

import json

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours, Job, at_once, shifted
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.shift import shift

pytest.importorskip("highspy")

INF = float("inf")


def hours(price, carbon=None, base=None):
    count = len(price)
    return Hours(
        length_s=1.0,
        base_w=np.array(base or [0.0] * count, dtype=float),
        usd_per_j=np.array(price, dtype=float),
        carbon_g=np.array(carbon or [0.0] * count, dtype=float),
    )


def job(energy, limit, first=0, last=4, name="a"):
    return Job(name=name, energy_j=energy, first=first, last=last, limit_w=limit)


def test_the_cheapest_hours_are_filled_first():
    # 5 J at most 2 W: two in the hour of price 1, two in that of 2, one in that of 3
    found = shifted(hours([3, 1, 4, 2]), [job(5.0, 2.0)], INF, 1.0, 0.0)
    assert found.job_w[0] == pytest.approx([1, 2, 0, 2])
    assert found.usd == pytest.approx(3 + 2 + 4)
    early = at_once(hours([3, 1, 4, 2]), [job(5.0, 2.0)], INF, 1.0)
    assert early.job_w[0] == pytest.approx([2, 2, 1, 0])
    assert early.usd == pytest.approx(6 + 2 + 4)


def test_a_price_of_carbon_moves_it_and_the_pue_scales_both():
    table = hours([1, 2], carbon=[10, 1])
    cheap = shifted(table, [job(1.0, 1.0, last=2)], INF, 1.5, 0.0)
    clean = shifted(table, [job(1.0, 1.0, last=2)], INF, 1.5, 1.0)
    assert (cheap.usd, cheap.carbon_g) == (pytest.approx(1.5), pytest.approx(15.0))
    assert (clean.usd, clean.carbon_g) == (pytest.approx(3.0), pytest.approx(1.5))


def test_the_row_leaves_room_beside_the_service():
    # limit 3, the service draws 2 and 0: one watt in the cheap hour, the rest in the other
    found = shifted(hours([1, 5], base=[2, 0]), [job(3.0, 9.0, last=2)], 3.0, 1.0, 0.0)
    assert found.job_w[0] == pytest.approx([1, 2])
    assert shifted(hours([1, 5], base=[3, 3]), [job(1.0, 9.0, last=2)], 3.0, 1.0, 0.0) is None


def test_jobs_keep_their_hours():
    found = shifted(hours([1, 2, 3]), [job(1.0, 1.0, 2, 3), job(1.0, 1.0, 0, 3, "b")], INF, 1.0, 0.0)
    assert found.job_w[0] == pytest.approx([0, 0, 1])
    assert found.job_w[1] == pytest.approx([1, 0, 0])


def test_equal_hours_gain_nothing():
    table, work = hours([2, 2, 2, 2]), [job(3.0, 1.0)]
    assert shifted(table, work, INF, 1.0, 0.0).usd == pytest.approx(at_once(table, work, INF, 1.0).usd)


@pytest.mark.parametrize("seed", range(5))
def test_never_dearer_than_at_once_and_all_work_is_done(seed):
    draw = np.random.default_rng(seed)
    table = hours(draw.uniform(0.01, 1, 12).tolist(), draw.uniform(1, 9, 12).tolist(), draw.uniform(0, 2, 12).tolist())
    work = [job(float(draw.uniform(1, 4)), 1.5, 0, 12, str(i)) for i in range(3)]
    best, early = shifted(table, work, 4.0, 1.2, 0.0), at_once(table, work, 4.0, 1.2)
    assert best.usd <= early.usd + 1e-9
    assert best.job_w.sum(axis=1) == pytest.approx([w.energy_j for w in work])
    assert (best.job_w.sum(axis=0) + table.base_w <= 4.0 + 1e-6).all()


def table(tmp_path, text):
    path = tmp_path / "hours.csv"
    path.write_text(text)
    return str(path)


def test_the_door_reads_kilowatt_hours_and_a_fleets_own_draw(tmp_path):
    path = table(tmp_path, "usd_per_kwh,carbon_g_per_kwh\n0.2,100\n0.1,300\n")
    found = shift(hours=path, job="train=10", pue=1.5)
    assert found.best.usd == pytest.approx(10 * 1.5 * 0.1)
    assert found.early.usd == pytest.approx(10 * 1.5 * 0.2)
    answer = {"series": {"start_s": [0.0, 1800.0, 3600.0, 5400.0], "power_w": [1000.0, 3000.0, 500.0, 500.0]}}
    fleet = tmp_path / "fleet.json"
    fleet.write_text(json.dumps(answer))
    beside = shift(hours=path, job="train=10", fleet=str(fleet))
    assert beside.hours.base_w.tolist() == [2000.0, 500.0]
    assert beside.service_usd == pytest.approx(2 * 0.2 + 0.5 * 0.1)


def test_too_much_work_is_a_result_and_wrong_words_are_refused(tmp_path):
    path = table(tmp_path, "usd_per_kwh,power_w\n0.2,900\n0.1,900\n")
    found = shift(hours=path, job="train=10,most=20", row_limit_w=1000)
    assert isinstance(found, InfeasibleAnswer)
    assert found.infeasible.have == pytest.approx(0.2 * 3.6e6)
    for words in ("train", "train=x", "train=1,until=9", "train=1,for=3"):
        with pytest.raises(ScenarioError, match="NAME=KWH"):
            shift(hours=path, job=words)
    with pytest.raises(ScenarioError, match="usd_per_kwh"):
        shift(hours=table(tmp_path, "a,b\n1,2\n"), job="train=1")
    with pytest.raises(ScenarioError, match="hours and job"):
        shift(hours=path)

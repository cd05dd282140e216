"""Work in cheap or clean hours: greedy schedules by hand, laws of the program, and refusals."""

import json

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours, Job, at_once, shifted
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.shift import read_hours, shift

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


def day_of(tmp_path, *lines, header="usd_per_kwh,carbon_g_per_kwh,power_w"):
    path = tmp_path / "hours.csv"
    path.write_text("\n".join((header, *lines)) + "\n")
    return path


def test_hours_of_a_file(tmp_path):
    """A kilowatt hour is 3.6e6 J; a blank is 0, and a price may be below it."""
    found = read_hours(day_of(tmp_path, "0.36,360,5", "-0.18,,"))
    assert found.length_s == 3600.0
    assert found.usd_per_j == pytest.approx([1e-7, -5e-8])
    assert found.carbon_g == pytest.approx([1e-4, 0.0])
    assert found.base_w.tolist() == [5.0, 0.0]
    assert read_hours(day_of(tmp_path, "3.6", header="carbon_g_per_kwh")).usd_per_j.tolist() == [0.0]
    for line in ("1,-1,0", "1,1,-1", "1,1,lots", "1,1,inf", "1,1,1e12", "-1e12,1,1"):
        with pytest.raises(ScenarioError, match=r"line 2: .*write a number"):
            read_hours(day_of(tmp_path, line))
    with pytest.raises(ScenarioError, match="write the columns"):
        read_hours(day_of(tmp_path, "1", header="power_w"))
    with pytest.raises(ScenarioError, match="0 hours; write 1 to 8,784"):
        read_hours(day_of(tmp_path))


@pytest.mark.parametrize(
    ("start_s", "power_w", "of_hours"),
    [
        ([0], [4], [4, 4, 4]),
        ([0, 600], [1, 3], [2, 2, 2]),  # twenty minutes stand for an hour
        ([0, 3600], [1, 3], [1, 3, 1]),  # two hours, and again
        ([0, 1800, 3600], [1, 3, 9], [2, 9, 2]),  # an hour and a half
        ([0, 1800, 3600, 5400], [1, 3, 5, 7], [2, 6, 2]),
        ([0, 3600, 7200], [1, 2, 3], [1, 2, 3]),
    ],
)
def test_watts_of_a_fleets_answer(tmp_path, start_s, power_w, of_hours):
    answer = tmp_path / "fleet.json"
    answer.write_text(json.dumps({"series": {"start_s": start_s, "power_w": power_w}}))
    assert read_hours(day_of(tmp_path, "1,1,99", "1,1,99", "1,1,99"), str(answer)).base_w.tolist() == of_hours


def test_jobs_as_they_are_written(tmp_path):
    """4 kWh within two of three hours, at most 3 kW, or all in one hour; the service's 1 kWh an hour costs 0.1 $."""
    path = day_of(tmp_path, "0.1,200,1000", "0.2,100,1000", "0.3,300,1000")
    found = shift(hours=str(path), job=["train=4,from=1,until=3,most=3", "b=1"], pue=1.5)
    train, other = found.jobs
    assert (train.first, train.last, train.limit_w, train.energy_j) == (1, 3, 3000.0, 4 * 3.6e6)
    assert (other.first, other.last, other.limit_w) == (0, 3, 1000.0)
    assert found.best.job_w[0] == pytest.approx([0, 3000, 1000])
    assert found.best.job_w[1] == pytest.approx([1000, 0, 0])
    assert found.service_usd == pytest.approx(1.5 * (0.1 + 0.2 + 0.3))
    assert found.service_carbon_g == pytest.approx(1.5 * 600)
    assert found.peak_w == pytest.approx(4000.0)
    assert found.notes == ()
    assert found.best.usd == pytest.approx(1.5 * (3 * 0.2 + 1 * 0.3 + 1 * 0.1))


@pytest.mark.parametrize(
    "text",
    [
        "train",
        "=4",
        "a=0",
        "a=-1",
        "a=1e12",
        "a=much",
        "a=1,most=0",
        "a=1,speed=3",
        "a=1,from=3",
        "a=1,from=-1",
        "a=1,from=0.5",
        "a=1,until=4",
        "a=1,until=1.5",
        "a=1,from=2,until=2",
    ],
)
def test_jobs_that_make_no_sense(tmp_path, text):
    with pytest.raises(ScenarioError, match="write NAME=KWH"):
        shift(hours=str(day_of(tmp_path, "1,1,0", "1,1,0", "1,1,0")), job=[text])


def energy_of(tmp_path, jobs, *lines, **limits):
    """Kilowatt hours that the jobs need, and those that they can have."""
    found = shift(hours=str(day_of(tmp_path, *lines)), job=jobs, **limits)
    assert isinstance(found, InfeasibleAnswer)
    return found.infeasible.need / 3.6e6, found.infeasible.have / 3.6e6


def test_what_jobs_need_and_can_have(tmp_path):
    """Two hours of 2 kW beside a service of 1 kW leave 1 kWh each. A job of 1 kW has 2 kWh in two hours, and another no
    more than it needs. Where both may run in the first hour alone, the room of the second is none of theirs."""
    assert energy_of(tmp_path, ["a=3"], "1,1,1000", "1,1,1000", row_limit_w=2000) == pytest.approx((3, 2))
    assert energy_of(tmp_path, ["a=3,most=1", "b=1"], "1,1,0", "1,1,0") == pytest.approx((4, 3))
    first = ["a=1,until=1", "b=1,until=1"]
    assert energy_of(tmp_path, first, "1,1,0", "1,1,0", row_limit_w=1000) == pytest.approx((2, 1))
    assert energy_of(tmp_path, ["a=1,until=1"], "1,1,3000", "1,1,0", row_limit_w=1000) == pytest.approx((1, 0))


def test_hours_in_which_the_service_alone_is_above_the_limit(tmp_path):
    over = shift(hours=str(day_of(tmp_path, "1,1,3000", "1,1,1000", "1,1,2000")), job=["a=1"], row_limit_w=2000)
    assert over.notes == ("row_limit_w: the service alone is above it in 1 hours",)
    assert over.best.job_w[0] == pytest.approx([0, 1000, 0])

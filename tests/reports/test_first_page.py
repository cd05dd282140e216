"""The first page of a report: the answer, the money and the risk on one page, within bounds of size and time."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from orrery.catalog.api_prices import api_prices_of, get_api_price
from orrery.fleet.money import Way
from orrery.reports.make import report_of
from orrery.reports.money import Bill, money_section, served_bill, way_usd_at
from orrery.reports.page import page
from orrery.reports.pdf import browser
from orrery.reports.source import Source
from orrery.reports.words import name_and_unit
from orrery.scenario.schema import read_scenario

BILL = Bill(
    model="a model of nobody's",
    usd_per_hour=7.2,
    full_tokens_per_s=1000.0,
    used_frac=0.5,
    full="the most within the SLOs",
    input_tokens=1000.0,
    output_tokens=250.0,
)
PLAN = {"model": "llama-3.1-8b", "device": "h100-sxm", "max_devices": 2, "rate": 4.0, "input_tokens": 512}
PLAN |= {"output_tokens": 128, "slo": ["ttft:500", "tpot:30"], "tp": 1}


def test_a_million_tokens_cost_the_hour_over_what_the_hour_makes():
    # 7.2 dollars an hour are 0.002 a second; 1,000 tokens a second make a million in 1,000 s
    assert BILL.at(1.0) == pytest.approx(2.0)
    assert BILL.usd_per_million == pytest.approx(4.0)
    section = money_section(BILL)
    assert section.summary[0].startswith("$7.20 an hour, $5,256 a month of 730 hours; at 50 % utilization, $4.00")
    assert len(section.figures) == 1


def test_without_a_price_there_is_no_bill_but_the_api_is_known():
    free = replace(BILL, usd_per_hour=None)
    assert money_section(free) is None
    assert money_section(None) is None
    known = money_section(replace(free, model="meta-llama/Llama-3.1-8B"))
    assert "--usd-per-hour" in known.summary[0]
    assert "API alternative" in known.summary[1]
    assert known.figures == ()


def test_the_api_is_the_cheapest_of_the_model_and_costs_more_from_where_the_curves_meet():
    prices = api_prices_of("llama-3.1-8b")
    assert {p.name for p in prices} >= {"deepinfra/llama-3.1-8b", "groq/llama-3.1-8b"}
    # 0.02 in and 0.04 out, 4 input tokens for each output token: 0.04 + 4 x 0.02
    assert get_api_price("deepinfra/llama-3.1-8b").usd_per_million(1000, 250) == pytest.approx(0.12)
    known = replace(BILL, model="llama-3.1-8b")
    assert "it costs less at any load" in money_section(known).summary[1]
    cheap = replace(known, usd_per_hour=0.108)  # 0.03 at full use, 0.12 at a quarter of it
    assert "it costs more from 25 % utilization on" in money_section(cheap).summary[1]


def test_a_way_to_pay_at_another_utilization():
    # 200 of 300 dollars are fixed; 150 M tokens at half use, 300 M at full use: (200 + 200) / 300
    own = Way(
        name="own", month_usd=300.0, fixed_usd=200.0, cash_usd=(300.0,), million_output_usd=2.0, break_even_frac=0
    )
    assert way_usd_at(own, 0.5, 0.5) == pytest.approx(2.0)
    assert way_usd_at(own, 0.5, 1.0) == pytest.approx(4 / 3)


def test_the_bill_of_a_run_is_its_price_times_its_rate():
    run = {"usd_per_million_tokens": 0.5, "output_throughput": 2000.0, "completed": 4, "model_id": "m"}
    run |= {"total_input_tokens": 400, "total_output_tokens": 80}
    bill = served_bill(run, "the simulated load")
    assert bill.usd_per_hour == pytest.approx(3.6)  # 2,000 a second x 3,600 s x 0.5 / 1e6
    assert (bill.input_tokens, bill.output_tokens, bill.usd_per_million) == (100, 20, pytest.approx(0.5))
    assert served_bill(run | {"completed": 0}, "") is None


def test_a_plan_says_whether_the_slow_end_meets_its_slos():
    report = report_of(Source(kind="plan", scenario=read_scenario(PLAN)))
    around = {n.name: n.interval for n in report.numbers}
    assert ("within the SLO" in report.risks[1]) == (around["tpot_s"].high_80 <= 0.030)
    strict = report_of(Source(kind="plan", scenario=read_scenario({**PLAN, "slo": ["tpot:5"]})))
    high = next(n.interval for n in strict.numbers if n.name == "tpot_s").high_80
    assert high > 0.005
    assert "misses the SLO" in strict.risks[0]
    assert len(report.risks) <= 5


def test_the_first_page_stands_before_the_details():
    report = report_of(Source(kind="plan", scenario=read_scenario(PLAN)))
    text = page(report)
    places = [text.index(f'id="{name}"') for name in ("question", "answer", "money", "risk", "numbers", "alternatives")]
    assert places == sorted(places)
    assert text.index('class="details"') > places[3]
    assert [n.name for n in report.key_numbers][:3] == ["num_devices", "usd_per_hour", "usd_per_million_tokens"]
    assert len(report.key_numbers) == 6


def test_a_unit_is_no_part_of_a_name():
    assert name_and_unit("power_limit_w") == ("power_limit", "w")
    assert name_and_unit("num_devices") == ("num_devices", "")


COMMANDS = {
    "plan": "plan --model llama-3.1-70b --device h100-sxm,mi300x --max-devices 8 --trace chat --slo ttft:1000 "
    "--slo tpot:50",
    "ways to pay": "plan --model llama-3.3-70b --device h100-sxm --weights fp8 --rate 4 --input-tokens 1000 "
    "--output-tokens 250 --slo tpot:50 --api-price deepinfra/llama-3.3-70b --buy-usd 35000",
    "estimate": "estimate --model llama-3.1-70b --device h100-sxm --tp 4 --weights fp8 --input-tokens 1024 "
    "--output-tokens 256 --concurrency 64",
    "simulate": "simulate --model llama-3.1-8b --device h100-sxm --trace chat --rate 8 --num-requests 2000 "
    "--slo ttft:1000",
    "capacity": "simulate --model llama-3.1-8b --device h100-sxm --trace chat --num-requests 500 --slo ttft:1000 "
    "--find-capacity",
    "sweep": "simulate --model llama-3.1-8b --device h100-sxm --trace chat --num-requests 500 --sweep rate=2,4,8",
    "train": "train --model llama-3.1-8b --device h100-sxm --devices 64 --global-batch 256 --seq-len 4096 "
    "--train-tokens 1e12 --sharding zero1 --micro-batch 1",
    "layouts": "train --model llama-3.1-8b --device h100-sxm --devices 16 --global-batch 128 --seq-len 4096 "
    "--train-tokens 1e11 --plan",
}
MAX_BYTES, MAX_CPU_S, NUM_TRIES = 500_000, 3.0, 3
PRINTED_PX = (680, 994)
"""The printed area of an A4 page."""


def cpu_s(command: list[str], folder: Path) -> float:
    """Seconds of processors that a command takes, its children's included."""
    before = os.times()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_report_is_one_page_first_small_and_made_in_three_seconds(name, tmp_path):
    pytest.importorskip("playwright.sync_api")
    if browser() is None:
        pytest.skip("no browser")
    orrery = [sys.executable, "-m", "orrery"]
    answer = subprocess.run([*orrery, *COMMANDS[name].split(), "--json"], capture_output=True, text=True, check=True)
    json.loads(answer.stdout)
    (tmp_path / "a.json").write_text(answer.stdout)
    for ending in ("html", "pdf"):
        (tmp_path / f"a.{ending}").unlink(missing_ok=True)
        write = [*orrery, "report", "a.json", "--out", f"a.{ending}"]
        spent = min(cpu_s(write, tmp_path) for _ in range(NUM_TRIES))
        print(f"\n{name}: {ending} {spent:.2f} s, {(tmp_path / f'a.{ending}').stat().st_size:,} bytes")
        assert spent < MAX_CPU_S
        assert (tmp_path / f"a.{ending}").stat().st_size < MAX_BYTES
    assert first_page_px(tmp_path / "a.html") <= PRINTED_PX[1]


def first_page_px(path: Path) -> float:
    """Where the first page ends as it is printed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=browser(), args=["--no-sandbox", "--disable-gpu"])
        found = started.new_page(viewport={"width": PRINTED_PX[0], "height": PRINTED_PX[1]})
        found.emulate_media(media="print")
        found.goto(path.as_uri())
        end = "document.querySelector('.details').previousElementSibling.getBoundingClientRect().bottom + scrollY"
        height: float = found.evaluate(end)
        started.close()
    return height

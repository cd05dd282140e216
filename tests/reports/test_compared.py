"""Reports of comparisons: the best design first, differences with the interval that is left, what cannot be told."""

import pytest

from orrery.base.units import percent
from orrery.reports.compared import compare_report, what_if_report
from orrery.reports.page import page
from orrery.scenario.compare import compare
from orrery.scenario.what_if import what_if

BASE = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 1024, "output_tokens": 256, "concurrency": 32}
TOO_LARGE = {**BASE, "model": "llama-3.1-70b"}


@pytest.fixture(scope="module")
def designs():
    return compare([BASE, {**BASE, "device": "h200-sxm"}, {**BASE, "weights": "fp8"}], names=["a", "b", "c"])


def test_the_cheapest_design_is_the_answer(designs):
    report = compare_report(designs)
    costs = {d.name: d.side.figures["usd_per_million_tokens"] for d in designs.designs}
    best = min(costs, key=costs.get)
    assert report.headline.startswith(f"{best} has the lowest cost per 1M tokens: ")
    assert "beside a" in report.headline
    shown = next(n for n in report.numbers if n.name == "usd_per_million_tokens")
    assert shown.value == costs[best]
    assert shown.interval.low_80 < shown.value < shown.interval.high_80
    assert report.money is not None
    assert report.facts


def test_every_design_has_a_column_with_its_difference(designs):
    (table,) = compare_report(designs).alternatives.tables
    assert table.columns == ("", "a", "b", "c")
    row = next(r for r in table.rows if r[0] == "Time per output token (TPOT)")
    apart = designs.designs[1].difference["tpot_s"].frac
    assert row[2].endswith(f"({percent(apart, is_signed=True)})")
    assert "(" not in row[1]


def test_many_designs_are_rows():
    found = compare([{**BASE, "concurrency": n} for n in (1, 2, 4, 8, 16)])
    report = compare_report(found)
    (table,) = report.alternatives.tables
    assert len(table.rows) == 5
    assert table.rows[table.chosen][0] == "concurrency 16"
    assert "TPOT" in table.columns


def test_what_cannot_be_told_apart_is_a_risk():
    found = compare([BASE, {**BASE, "concurrency": 33}], names=["a", "b"])
    difference = found.designs[1].difference["usd_per_million_tokens"]
    risks = " ".join(compare_report(found).risks)
    assert ("does not tell b from a" in risks) == (not difference.is_sure)


def test_no_feasible_design_is_a_no():
    report = compare_report(compare([TOO_LARGE, {**TOO_LARGE, "concurrency": 2}], names=["a", "b"]))
    assert not report.is_feasible
    assert report.headline == "None of the designs is feasible."
    assert report.alternatives.tables == ()
    assert report.alternatives.summary[0].startswith("a: ")


def test_one_infeasible_design_stands_below_the_others():
    report = compare_report(compare([BASE, TOO_LARGE], names=["a", "b"]))
    assert report.is_feasible
    assert report.alternatives.summary[0].startswith("b: ")


def test_a_technique_is_reported_with_its_effect_and_one_without_by_its_reason():
    answer = what_if(("fp8-weights", "token-split"), **BASE)
    report = what_if_report(answer)
    result = next(r for r in answer.results if r.technique == "fp8-weights")
    assert report.headline.startswith(f"fp8-weights {result.verdict}: ")
    (table,) = report.alternatives.tables
    assert table.columns[:3] == ("", "without", "fp8-weights")
    assert any(line.startswith("token-split: ") for line in report.alternatives.summary)
    html = page(report)
    assert "fp8-weights" in html
    assert "<script" not in html


def test_the_lines_ask_for_each_design_alone(designs):
    lines = [command.line for command in compare_report(designs).commands]
    assert lines[1].startswith("orrery estimate --model llama-3.1-8b --device h200-sxm ")
    assert len(lines) == 3

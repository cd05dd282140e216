"""The first page's filters: what is wrong is said, and what is not known yet is not said to be impossible."""

import re

import pytest
from playwright.sync_api import expect


@pytest.fixture
def first(tab):
    """The first page, drawn by its scripts."""
    tab.goto("/")
    tab.locator("#rows button").first.wait_for()
    return tab


@pytest.mark.parametrize("wrong", ["abc", "", "0", "-5", "1e999"])
def test_a_wrong_slo_is_said_beside_its_field_and_the_last_right_one_holds(first, wrong):
    ttft, problem = first.locator("#ttft"), first.locator("#slo-problem")
    ttft.fill("200")
    rows = first.locator("#rows").inner_text()
    ttft.fill(wrong)
    expect(problem).to_have_text("TTFT: write a number of ms above 0.")
    expect(ttft).to_have_attribute("aria-invalid", "true")
    assert first.locator("#rows").inner_text() == rows
    ttft.fill("300")
    expect(problem).to_have_text("")
    expect(ttft).to_have_attribute("aria-invalid", "false")
    expect(first).to_have_url(re.compile("ttft=300"))


def test_a_traffic_that_is_not_computed_yet_is_said_to_be_computed(tab):
    tab.route("**/best/points*", lambda _: None)  # no answer comes
    tab.goto("/?model=llama-3.1-70b&traffic=8k%2F1k")
    expect(tab.locator("#answer")).to_contain_text("Computing every accelerator")
    expect(tab.locator("#chart")).to_contain_text("Computing")
    expect(tab.locator("#progress-words")).to_have_text(re.compile(r"^0 of \d+ accelerators computed$"))
    assert "No accelerator" not in tab.locator("main").inner_text()
    tab.unroute_all(behavior="ignoreErrors")


def test_published_runs_and_their_sources_are_reached_by_keyboard(first):
    first.locator("#rows button", has_text="H100").focus()
    first.keyboard.press("Enter")
    runs = first.locator("#point details")
    runs.locator("summary").focus()
    first.keyboard.press("Enter")
    found = runs.locator("li").all_inner_texts()
    titles = first.locator("#chart .run title").evaluate_all("(all) => all.map((one) => one.textContent)")
    assert found
    assert sorted(f"Published: H100 {one}" for one in found) == sorted(one for one in titles if ": H100 " in one)

"""Long work: started, watched, left alone, cancelled, read."""

import re

import pytest
from playwright.sync_api import expect


def start(page, num_requests, seed):
    """Fill in the form of a simulation and send it."""
    page.goto("/runs/new?kind=simulate")
    page.get_by_label("Number of requests").fill(str(num_requests))
    page.get_by_label("Seed").fill(str(seed))
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile(r"/runs/(?!new)[\w-]+$"))


@pytest.mark.slow
def test_a_run_is_done_and_handed_out(tab, finished_run):
    tab.goto(finished_run)
    expect(tab.locator(".badge").first).to_have_text("done")
    rows = tab.request.get(f"{finished_run}?format=csv").text().splitlines()
    assert len(rows) == 51
    assert rows[0].startswith("input_lens,output_lens,ttfts")
    answer = tab.request.get(f"{finished_run}?format=json").json()
    assert "ttft" in str(answer)
    expect(tab.locator("#chart-steps .at-desk svg")).to_be_visible()


def test_a_run_goes_on_while_its_page_is_reloaded_and_can_be_cancelled(profile):
    one, other = profile().new_page(), profile().new_page()
    start(one, 1_000_000, 1)
    expect(one.locator("progress")).to_be_visible()
    expect(one.get_by_text(re.compile(r"^runs$"))).to_be_visible()
    address = one.url
    one.reload()
    expect(one.locator("progress")).to_be_visible()
    other.goto("/runs")  # the list says the same, in somebody else's browser
    line = other.locator("tr", has=other.locator(f"a[href='{address[address.index('/runs/') :]}']"))
    expect(line.locator(".badge")).to_have_text("runs")
    one.get_by_role("button", name="Cancel").click()
    expect(one.get_by_text("It was cancelled")).to_be_visible()
    assert one.url == address
    expect(line.locator(".badge")).to_have_text("cancelled")  # without a reload
    line.get_by_role("button", name="Delete").click()
    expect(line).to_have_count(0)


def test_what_cannot_be_run_is_said_in_the_form(profile):
    tab = profile(may_fail=True).new_page()
    tab.goto("/runs/new?kind=simulate&model=llama-3.1-8b&device=h100-sxm&rate=5&input_tokens=9&output_tokens=9")
    tab.get_by_label("Number of requests").fill("2000000")
    tab.get_by_role("button", name="Start").click()
    expect(tab.get_by_role("alert")).to_contain_text("1,000,000")
    expect(tab.get_by_label("Number of requests")).to_have_value("2000000")


@pytest.mark.slow
def test_progress_grows_until_the_result_takes_its_place(profile):
    tab = profile().new_page()
    start(tab, 200_000, 2)
    seen = set()
    while tab.locator("progress").count() and len(seen) < 1000:
        seen.add(tab.evaluate("document.querySelector('progress')?.value ?? 1"))
        tab.wait_for_timeout(200)
    assert sorted(seen)[0] < 1
    assert len(seen) >= 2
    expect(tab.locator(".badge").first).to_have_text("done", timeout=120_000)
    expect(tab.locator("#said")).to_contain_text("done")


@pytest.mark.slow
def test_a_report_of_a_run_is_a_page_by_itself(tab, finished_run):
    tab.goto(finished_run)
    tab.get_by_role("button", name="Write a report").click()
    link = tab.get_by_role("link", name="Download the report")
    expect(link).to_be_visible(timeout=60_000)
    with tab.expect_download() as found:
        link.click()
    text = found.value.path().read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html")
    assert "http-equiv" in text or "<style" in text

"""Papers: found while typing, read, marked, and kept so; words of the field: defined where they stand."""

import re

import pytest
from playwright.sync_api import expect


def test_papers_are_found_while_one_types(tab):
    tab.goto("/papers/library")
    whole = tab.locator("#found h2").inner_text()
    tab.get_by_label("Find papers by what they are about").press_sequentially("long prompts stall decodes", delay=5)
    expect(tab.locator("#found h2")).not_to_have_text(whole)
    expect(tab.locator(".paper h3").first).to_contain_text("Sarathi-Serve")
    expect(tab).to_have_url(
        re.compile(r"/papers/library\?q=long(\+|%20)prompts\1stall\1decodes$")
    )  # no blank fields in it
    expect(tab.locator("#said")).to_have_text(re.compile(r"^\d+ of \d+ papers$"))
    tab.locator(".paper h3 a").first.click()
    expect(tab.locator("h1")).to_contain_text("Sarathi-Serve")
    tab.go_back()
    expect(tab.get_by_label("Find papers by what they are about")).to_have_value("long prompts stall decodes")
    expect(tab.locator(".paper h3").first).to_contain_text("Sarathi-Serve")


def test_marks_stay_and_show_at_once(tab):
    tab.goto("/papers/distserve")
    for name in ("Upvote", "Read"):
        button = tab.get_by_role("button", name=name)
        assert button.get_attribute("aria-pressed") == "false"
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
    tab.get_by_role("button", name="Follow layer serving").click()
    expect(tab.get_by_role("button", name="Following layer serving")).to_have_attribute("aria-pressed", "true")
    tab.goto("/papers?q=distserve+goodput+disaggregating")
    paper = tab.locator(".paper", has_text="DistServe").first
    expect(paper).to_have_class("paper read")
    expect(paper.get_by_role("button", name="Upvote")).to_have_attribute("aria-pressed", "true")
    tab.goto("/papers/trending")
    tab.get_by_text("What you follow").click()
    tab.get_by_role("button", name="Following layer serving").click()
    expect(tab.get_by_role("button", name="Follow layer serving", exact=False).first).to_have_attribute(
        "aria-pressed", "false"
    )
    tab.goto("/papers/distserve")
    for name in ("Upvote", "Read"):  # and back
        tab.get_by_role("button", name=name).click()
        expect(tab.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "false")


@pytest.mark.slow
def test_new_papers_stand_under_their_day_and_trend(tab):
    tab.goto("/papers/day")
    tab.get_by_role("link", name="Chunked prefill at rest").click()
    expect(tab.locator("h1")).to_have_text("Chunked prefill at rest")
    expect(tab.locator("table", has_text="What it claims")).to_contain_text("2.1")
    tab.get_by_role("link", name="Trending").click()
    expect(tab.locator(".paper", has_text="Chunked prefill at rest")).to_contain_text("Why it is here")


@pytest.mark.slow
def test_what_a_paper_would_do_to_ones_own_deployment(tab):
    tab.goto("/papers/sarathi-serve")
    meaning = tab.locator("#meaning")
    meaning.get_by_label("Model", exact=True).fill("llama-3.1-8b")
    meaning.get_by_role("button", name="Compute").click()
    expect(meaning.locator(".effect").first).to_contain_text("→")
    expect(tab).to_have_url(re.compile("model=llama-3.1-8b"))


@pytest.mark.slow
def test_the_scorecard_narrows_by_layer(tab):
    tab.goto("/papers/scorecard")
    head = tab.locator("#found h2").first
    whole = head.inner_text()  # "381 of 1,531 claims reproduced"
    tab.get_by_label("Layer").select_option("moe")
    expect(head).not_to_have_text(whole)
    num, num_whole = (int(text.split()[2].replace(",", "")) for text in (head.inner_text(), whole))
    assert 0 < num < num_whole


def test_a_word_of_the_field_is_defined_where_it_stands(tab, views):
    tab.goto(views["designs"])
    word = tab.get_by_role("rowheader").locator(".term", has_text="Time per output token").first
    tip = tab.get_by_role("tooltip")
    word.focus()
    expect(tip).to_contain_text("over the output tokens after the first")
    assert word.get_attribute("aria-describedby") == "tip"
    tab.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    word.hover()
    expect(tip).to_be_visible()
    tip.hover()
    tab.wait_for_timeout(400)
    expect(tip).to_be_visible()  # stays while the pointer is on it
    tab.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    stops = tab.locator(".term[tabindex]").evaluate_all("all => all.map((one) => one.dataset.meaning)")
    assert len(stops) == len(set(stops)) > 3

"""What leaves a page: its address, files and pictures; and what a page is without script."""

import csv
import io
import json
import re
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
}


def saved(page, click):
    """The bytes that a click saves, and their name."""
    with page.expect_download() as found:
        click()
    return found.value.path().read_bytes(), found.value.suggested_filename


def test_a_design_is_handed_out_as_tables_and_pictures(tab, views):
    tab.goto(views["design"])
    tab.get_by_text("Export", exact=True).click()
    answer, name = saved(tab, tab.get_by_role("link", name="JSON", exact=True).click)
    assert name == "design-llama-3.1-8b-h100-sxm.json"
    assert json.loads(answer)["settings"]["concurrency"] == "32"
    table, _ = saved(tab, tab.get_by_role("link", name="CSV", exact=True).click)
    ops = list(csv.DictReader(io.StringIO(table.decode())))
    assert len(ops) > 10
    assert sum(float(op["time_s"]) for op in ops) > 0
    drawing, name = saved(tab, tab.get_by_role("link", name="Time breakdown, SVG").click)
    assert name.endswith(".svg")
    assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
    picture, name = saved(tab, tab.get_by_role("button", name="PNG of time breakdown").click)
    assert name == "time-breakdown.png"
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert int.from_bytes(picture[16:20], "big") >= 1000  # wide, twice as fine as on the page
    assert len(picture) > 5_000  # not blank


def test_the_menu_of_exports_copies_the_address_as_it_stands(profile, views):
    mine = profile(permissions=["clipboard-read", "clipboard-write"]).new_page()
    mine.goto(views["design"])
    mine.get_by_label("Tensor parallel").fill("4")
    mine.get_by_label("Tensor parallel").press("Tab")
    expect(mine).to_have_url(re.compile("tp=4"))
    mine.get_by_text("Export", exact=True).click()
    mine.get_by_role("button", name="Copy link").click()
    expect(mine.get_by_role("status")).to_have_text("Copied.")
    assert mine.evaluate("navigator.clipboard.readText()") == mine.url


@pytest.mark.slow
def test_plans_and_sweeps_are_handed_out(tab, views):
    tab.goto(views["plans"])
    tab.get_by_text("Export", exact=True).click()
    table, _ = saved(tab, tab.get_by_role("link", name="Plans as CSV").click)
    assert len(table.splitlines()) == tab.locator("table.plans tbody tr").count() + 1
    picture, name = saved(tab, tab.get_by_role("button", name="PNG").click)
    assert (picture[:4], name) == (b"\x89PNG", "pareto-front.png")
    tab.goto(views["sweep"])
    tab.get_by_text("Export", exact=True).click()
    table, _ = saved(tab, tab.get_by_role("link", name="CSV").click)
    assert len(table.splitlines()) - 1 == int(tab.get_by_text(" estimates").inner_text().split()[0])


def test_a_shared_address_shows_the_same_to_somebody_else(profile, views):
    mine = profile().new_page()
    mine.goto(views["design"])
    mine.get_by_label("Tensor parallel").fill("4")
    mine.get_by_label("Tensor parallel").press("Tab")
    expect(mine).to_have_url(re.compile("tp=4"))
    theirs = profile().new_page()
    theirs.goto(mine.url)
    for what in ("#design .answer h2", "#design .figures"):
        assert theirs.locator(what).inner_text() == mine.locator(what).inner_text()
    expect(theirs.get_by_label("Tensor parallel")).to_have_value("4")


def test_two_tabs_do_not_disturb_each_other(profile, views):
    same = profile()
    one, other, apart = same.new_page(), same.new_page(), profile().new_page()
    for page, tp in ((one, "2"), (other, "4"), (apart, "8")):
        page.goto(views["design"])
        page.get_by_label("Tensor parallel").fill(tp)
    for page in (one, other, apart):
        page.get_by_label("Tensor parallel").press("Enter")
    for page, tp in ((one, "2"), (other, "4"), (apart, "8")):
        expect(page.locator("#design .answer h2")).to_contain_text(f"{tp} x h100-sxm: tp{tp}")
        page.reload()
        expect(page.locator("#design .answer h2")).to_contain_text(f"{tp} x h100-sxm: tp{tp}")


def test_a_models_config_is_uploaded_used_and_deleted(tab):
    tab.goto("/uploads")
    tab.get_by_label("File").set_input_files(
        {"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(CONFIG).encode()}
    )
    tab.get_by_label("Name (optional)").fill("small one")
    tab.get_by_role("button", name="Upload").click()
    file = tab.locator(".upload", has_text="small-one")
    expect(file).to_contain_text("16 layers")
    name = file.locator("code").inner_text()
    tab.goto("/design")
    tab.locator("#f-model").fill(name)
    tab.locator("#f-model").press("Tab")
    expect(tab).to_have_url(re.compile("model=upload%3Asmall-one"))
    expect(tab.locator("#design .answer h2")).to_contain_text("small-one")
    assert float(tab.locator("#design .figures dd").nth(0).inner_text().split()[0]) < 10  # ms, of a small model
    tab.goto("/uploads")
    tab.get_by_role("button", name="Delete config.json").click()
    expect(file).to_have_count(0)


@pytest.fixture
def bare(profile):
    """A page in a browser that runs no script."""
    return profile(java_script_enabled=False).new_page()


def test_without_script_a_plan_is_found_and_opened(bare):
    bare.goto("/plan")
    bare.locator("#f-model").fill("llama-3.1-8b")
    bare.locator("#f-max_devices").fill("2")
    bare.get_by_role("button", name="Find plans").click()
    bare.get_by_role("link", name="Show the plans when they are ready").click()
    bare.locator("table.plans tbody a").first.click()
    expect(bare.locator("#design .figures")).to_be_visible()
    bare.locator("#f-tp").fill("2")
    bare.get_by_role("button", name="Estimate").click()
    expect(bare.locator("#design .answer h2")).to_contain_text("tp2")
    bare.get_by_role("link", name="Explain the time per output token").click()
    expect(bare.locator("h1")).to_contain_text("Why Time per output token is")
    bare.locator(".tree summary").first.click()
    bare.get_by_role("link", name="Breakdown").first.click()
    expect(bare.locator("h1")).to_contain_text("Why")


@pytest.mark.slow
def test_without_script_pages_compare_sweep_read_and_mark(bare):
    bare.goto("/compare")
    bare.locator("[id='f-b.device']").fill("b200-sxm")
    bare.get_by_role("button", name="Compare").click()
    expect(bare.locator("tr.compare-differs").first).to_contain_text("b200-sxm")
    bare.goto("/sweep")
    bare.locator("#sweep-to").fill("64")
    bare.get_by_role("button", name="Plot").click()
    expect(bare.locator("#sweep figure svg").first).to_be_visible()
    bare.goto("/papers")
    bare.locator("#q").fill("snapkv")
    bare.get_by_role("button", name="Search").click()
    paper = bare.locator(".paper", has_text="SnapKV").first
    paper.get_by_role("button", name="Upvote").click()
    expect(paper.get_by_role("button", name="Upvote")).to_have_attribute("aria-pressed", "true")
    paper.get_by_role("button", name="Upvote").click()
    expect(paper.get_by_role("button", name="Upvote")).to_have_attribute("aria-pressed", "false")

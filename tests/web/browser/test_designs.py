"""From the question to a plan, its design, what it is made of, and what else could be."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

TOKEN = "#design .figures div:nth-child(1) dd"


def requested(page):
    """The settings in a page's address."""
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}


def test_from_the_question_to_a_point_of_the_front_by_keyboard(tab):
    tab.goto("/plan")
    tab.get_by_label("Model", exact=True).fill("llama-3.1-8b")
    tab.get_by_label("Max devices").fill("2")
    tab.get_by_label("Time to first token").fill("")
    tab.get_by_label("Time to first token").press("Enter")  # a form is sent by Enter
    expect(tab).to_have_url(
        re.compile(r"/plans\?model=llama-3\.1-8b&device=h100-sxm&max_devices=2&trace=chat&slo=tpot")
    )
    expect(tab.locator("#front .at-desk svg a").first).to_be_visible()
    expect(tab.locator("#said")).to_have_text(re.compile(r"^\d+ plans found$"))
    points = tab.locator("#front .at-desk svg a")
    assert points.count() >= 5
    tab.get_by_role("link", name="Cost ($/1M output tokens)").focus()
    tab.keyboard.press("Tab")
    name = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert "h100-sxm tp" in name
    id = tab.evaluate("document.activeElement.dataset.id")
    expect(tab.locator(f"tr[data-id='{id}']").first).to_have_class("lit")  # its row lights up with it
    tab.keyboard.press("Enter")
    expect(tab).to_have_url(re.compile(r"/design\?model=llama-3\.1-8b&device=h100-sxm&tp="))
    assert f"tp{requested(tab)['tp']}" in name
    expect(tab.locator("#design h2").first).to_contain_text(f"tp{requested(tab)['tp']}")


@pytest.mark.slow
def test_the_front_turns_its_axes_and_the_table_its_order(tab, views):
    tab.goto(views["plans"].replace("&whole=1", ""))
    tab.get_by_role("link", name="Time to first token").click()
    expect(tab).to_have_url(re.compile("x=ttft"))
    expect(tab.locator("#front .at-desk svg")).to_contain_text("Time to first token")
    first = tab.locator("table.plans tbody th").first.inner_text()
    for order in ("ascending", "descending"):
        tab.locator("table.plans thead a").first.click()
        expect(tab.locator(f"th[aria-sort={order}]")).to_have_count(1)
    tab.go_back()
    expect(tab.locator("th[aria-sort=descending]")).to_have_count(0)
    tab.go_back()
    expect(tab.locator("table.plans tbody th").first).to_have_text(first)


def test_a_changed_setting_changes_the_numbers_and_the_address_and_back_restores_them(tab, views, table_of):
    tab.goto(views["design"])
    before = tab.locator(TOKEN).inner_text()
    tab.get_by_label("Tensor parallel").fill("2")
    tab.get_by_label("Tensor parallel").press("Tab")
    expect(tab).to_have_url(re.compile("tp=2"))
    expect(tab.locator("#design h2").first).to_contain_text("2 x h100-sxm: tp2")
    after = tab.locator(TOKEN).inner_text()
    assert after != before
    tpot_s = table_of(tab, f"{tab.url}&format=json")["tpot_s"]
    assert after.startswith(f"{tpot_s * 1e3:.3g} ms")
    expect(tab.locator("#said")).to_contain_text("per token")  # spoken
    tab.go_back()
    expect(tab.locator(TOKEN)).to_have_text(before, use_inner_text=True)
    assert "tp" not in requested(tab)
    expect(tab.get_by_label("Tensor parallel")).to_have_value("")
    tab.go_forward()
    expect(tab.locator(TOKEN)).to_have_text(after, use_inner_text=True)
    expect(tab.get_by_label("Tensor parallel")).to_have_value("2")


def test_a_mistake_is_said_beside_the_form_and_what_was_typed_stays(profile, views):
    tab = profile(may_fail=True).new_page()
    tab.goto(views["design"])
    tab.locator("#f-device").fill("h100-sxn")
    tab.locator("#f-device").press("Tab")
    expect(tab.get_by_role("alert")).to_contain_text("h100-sxm")  # the nearest known name
    expect(tab.locator("#f-device")).to_have_value("h100-sxn")


@pytest.mark.slow
def test_what_cannot_be_says_the_change_that_works(tab, views):
    tab.goto(views["infeasible"])
    expect(tab.locator("#design .answer")).to_contain_text(re.compile(r"needs \d+.* GB"))
    tab.get_by_role("heading", name="Changes that work").locator("+ ul a").first.click()
    expect(tab.locator("#design .figures")).to_be_visible()


def test_a_number_unfolds_down_to_a_datasheet(tab, views):
    tab.goto(views["design"])
    tab.locator("#why details").first.wait_for()
    for _ in range(12):
        fact = tab.locator("#why .fact", has_text=re.compile("datasheet|whitepaper|https://|measured|stated"))
        if fact.count():
            break
        closed = tab.locator("#why details:not([open]) > summary").first
        closed.focus()
        with tab.expect_response(re.compile("/design/why")):
            tab.keyboard.press("Enter")
        expect(tab.locator("#why .htmx-request")).to_have_count(0, timeout=30_000)
    expect(fact.first).to_be_visible()


@pytest.mark.slow
def test_a_figures_why_leads_to_its_tree(tab, views):
    tab.goto(views["design"])
    tab.get_by_role("link", name=re.compile("^why is Time to first token")).click()
    expect(tab.locator("#why strong").first).to_contain_text("Time to first token")


def test_a_design_is_compared_and_the_other_side_is_edited(tab, views):
    tab.goto(views["design"])
    tab.get_by_role("link", name="Compare with").click()
    expect(tab).to_have_url(re.compile("/compare"))
    b = tab.get_by_role("group", name="B")
    b.get_by_label("Device", exact=True).fill("h200-sxm")
    b.get_by_label("Device", exact=True).press("Tab")
    expect(tab).to_have_url(re.compile("b.device=h200-sxm"))
    expect(tab.locator("tr.compare-differs").filter(has_text="h200-sxm").first).to_be_visible()
    row = tab.locator("#compared tr", has_text="Time per output token").first
    ratio = float(row.locator("td").nth(2).inner_text().split()[0])
    assert 0.5 < ratio < 1  # more bandwidth, and all that is bound by it is faster
    tab.get_by_role("link", name="Swap A and B").click()
    expect(tab.get_by_role("group", name="A").get_by_label("Device", exact=True)).to_have_value("h200-sxm")
    swapped = float(row.locator("td").nth(2).inner_text().split()[0])
    assert abs(swapped * ratio - 1) < 0.01


def test_the_slider_of_a_sweep_moves_by_arrow_keys_and_speaks(tab, views):
    tab.goto(views["sweep"])
    slider = tab.get_by_role("slider")
    message = slider.get_attribute("aria-valuetext")
    mark = tab.locator("#sweep [data-scale] text").first.inner_html()
    slider.focus()
    tab.keyboard.press("ArrowRight")
    expect(slider).not_to_have_attribute("aria-valuetext", message)
    words = slider.get_attribute("aria-valuetext")
    assert re.fullmatch(r"\d+ requests", words)
    expect(tab.locator("#sweep-value")).to_have_text(words)
    expect(tab.locator("#sweep-point h2")).to_have_text(f"Concurrency: {words}")
    assert tab.locator("#sweep [data-scale] text").first.inner_html() != mark
    tab.keyboard.press("End")
    expect(tab.locator("#sweep-point h2")).to_have_text("Concurrency: 512 requests")
    expect(tab).to_have_url(re.compile(r"at=\d+"))
    tab.reload()
    expect(slider).to_have_attribute("aria-valuetext", "512 requests")


@pytest.mark.slow
def test_another_parameter_brings_its_own_range(tab):
    tab.goto("/sweep")
    tab.get_by_label("Swept parameter").select_option(label="Tensor parallel")
    expect(tab).to_have_url(re.compile("vary=tp"))
    expect(tab.locator("#sweep-at")).to_have_attribute("aria-valuetext", re.compile("^tp|[0-9]"))
    expect(tab.locator("#sweep figure svg").first).to_be_visible()


def test_on_a_phone_the_answer_comes_first_and_the_form_is_folded(profile, views):
    phone = profile(viewport={"width": 390, "height": 844}).new_page()
    phone.goto(views["design"])
    settings = phone.locator("aside details").first
    assert settings.get_attribute("open") is None
    assert phone.locator(".answer").bounding_box()["y"] < 300
    settings.locator("summary").first.click()
    assert phone.locator("#f-tp").is_visible()


def test_no_flag_of_a_command_line_is_broken_in_two(profile, views):
    phone = profile(viewport={"width": 390, "height": 844}).new_page()
    phone.goto(views["design"])
    flags = phone.locator("#command .flag")
    assert flags.count() > 3
    heights = flags.evaluate_all("all => all.map((one) => one.getClientRects().length)")
    assert set(heights) == {1}
    assert "--input-tokens" in flags.all_inner_texts()

"""Every word of the field that stands on a page has its definition on hover, on focus and by touch."""

import pytest
from playwright.sync_api import expect

from orrery.catalog.terms import get_term, terms

MISSING = """() => {
  const found = [];
  for (const place of document.querySelectorAll(WHERE)) {
    if (place.closest(NOT_IN) || place.querySelector(".term, " + NOT_IN)) { continue; }
    if (SPELLED.test(place.textContent)) { found.push(place.textContent.trim().slice(0, 60)); }
  }
  return found;
}"""

UNREACHED = """() => {
  const shown = [...document.querySelectorAll(".term")].filter((one) => one.getClientRects().length);
  const stops = new Set([...document.querySelectorAll(".term[tabindex='0']")].map((one) => one.dataset.meaning));
  return [...new Set(shown.map((one) => one.dataset.meaning))].filter((meaning) => !stops.has(meaning));
}"""

SILENT = """(worked) => {
  const found = [];
  for (const one of document.querySelectorAll(worked)) {
    if (!one.getClientRects().length || !SPELLED.test(one.textContent)) { continue; }
    one.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
    if (tip.hidden || !tip.textContent.startsWith(meaningIn(one.textContent))) { found.push(one.textContent.trim()); }
    hide();
  }
  return found;
}"""

UNFOLD = "for (const one of document.querySelectorAll('details')) { one.open = true; }"


def opened(profile, address, **options):
    page = profile(may_fail=True, **options).new_page()
    page.goto(address)
    expect(page.locator(".htmx-request, progress:not([value])")).to_have_count(0, timeout=60_000)
    page.evaluate(UNFOLD)
    return page


def test_every_word_of_a_page_is_defined(profile, view):
    page = opened(profile, view)
    assert page.evaluate(MISSING) == []
    assert page.evaluate(UNREACHED) == []
    assert page.evaluate(SILENT, "label, summary, th a, th button") == []
    known = {term.definition for term in terms()}
    marked = page.locator(".term").evaluate_all("all => all.map((one) => one.dataset.meaning)")
    assert set(marked) <= known
    shown = page.locator(".term[tabindex='0']").evaluate_all(
        "all => all.map((one) => { one.focus(); const text = tip.hidden ? '' : tip.textContent; one.blur(); hide();"
        " return [one.dataset.meaning, text]; }).filter(([meaning, text]) => meaning !== text)"
    )
    assert shown == []


def test_a_field_shows_its_help_to_the_pointer_and_to_the_keyboard(tab, views):
    tab.goto(views["what-if"])
    tip = tab.get_by_role("tooltip")
    meaning = get_term("concurrency").definition
    tab.locator("label", has_text="Concurrency").hover()
    expect(tip).to_contain_text(meaning)
    tab.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    tab.get_by_label("Output tokens").focus()
    tab.keyboard.press("Tab")
    expect(tab.get_by_label("Concurrency")).to_be_focused()
    expect(tip).to_contain_text(meaning)
    tab.get_by_label("Model").click()
    tab.get_by_label("Concurrency").click()  # no word hides what is clicked
    expect(tip).to_be_hidden()


@pytest.mark.slow
def test_on_a_phone_a_cell_shows_what_its_column_means(profile, views):
    page = opened(profile, views["filled fleet"], viewport={"width": 390, "height": 844}, has_touch=True)
    page.locator("td[data-label='Replicas']").first.tap()
    expect(page.get_by_role("tooltip")).to_be_visible()

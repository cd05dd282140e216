"""Usable by keyboard, by screen reader, in the dark and on a phone."""

import itertools

import pytest
from playwright.sync_api import expect

axe = pytest.importorskip("axe_playwright_python.base")

GRAVE = ("serious", "critical")
RUN = "rules => axe.run(document, {resultTypes: ['violations'], ...(rules ? {runOnly: rules} : {})})"
ON_A_PHONE = ["scrollable-region-focusable", "target-size", "meta-viewport"]
FOCUS = """() => {
  const one = document.activeElement;
  if (one === document.body) { return null; }
  const look = getComputedStyle(one), place = one.getBoundingClientRect();
  one.dataset.stop ??= String(window.stops = (window.stops || 0) + 1);
  return {stop: Number(one.dataset.stop), text: one.className + " " + one.textContent.trim().slice(0, 40),
          outline: look.outlineStyle === "none" ? 0 : parseFloat(look.outlineWidth),
          wide: place.width, high: place.height};
}"""


def grave(page, rules=None):
    """What axe-core finds that is serious, with where it is."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(axe.AXE_SCRIPT)
    found = page.evaluate(RUN, rules)["violations"]
    return [
        f"{one['id']}: {one['help']}; {len(one['nodes'])} of {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in GRAVE
    ]


def opened(profile, address, **options):
    """The page, and all of it loaded."""
    page = profile(may_fail=True, **options).new_page()
    page.goto(address)
    expect(page.locator(".htmx-request, progress:not([value])")).to_have_count(0, timeout=30_000)
    return page


def too_wide(page, width):
    """By how much the page is wider than a screen."""
    page.set_viewport_size({"width": width, "height": 844})
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_every_page_is_usable(profile, view):
    page = opened(profile, view)
    assert page.locator("h1").count() == 1
    assert "orrery" in page.title() or view.startswith("/report")  # a report is titled for its reader
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map((one) => Number(one.tagName[1]))")
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert grave(page) == []
    page.emulate_media(color_scheme="dark")
    assert grave(page, ["color-contrast"]) == []
    assert [too_wide(page, width) for width in (320, 390)] == [0, 0]
    assert grave(page, ON_A_PHONE) == []


@pytest.mark.slow
def test_a_run_is_usable(profile, finished_run):
    test_every_page_is_usable(profile, finished_run)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light"), (390, "dark"), (320, "light")])
def test_axe_finds_nothing_serious_by_any_rule_with_all_unfolded(profile, view, width, scheme):
    page = opened(profile, view, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.evaluate("for (const one of document.querySelectorAll('details')) { one.open = true; }")
    assert grave(page) == []


SELDOM = [pytest.param(name, marks=pytest.mark.slow) for name in ("sweep", "papers", "uploads", "new run")]


@pytest.mark.parametrize("name", ["home", "plans", "design", "papers of a day", *SELDOM])
def test_every_stop_of_the_tab_key_is_seen_and_none_holds_it(profile, views, name):
    page = opened(profile, views[name])
    most = page.locator("a, button, input, select, textarea, summary, [tabindex]").count() + 5
    stops = []
    for _ in range(most):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop is None or (stops and stop["stop"] == 1):
            break
        stops.append(stop)
    else:
        raise AssertionError("the tab key never leaves the page")
    assert stops[0]["text"] == "skip Skip to the content"
    assert [stop["stop"] for stop in stops] == list(range(1, len(stops) + 1))  # each once
    assert [stop for stop in stops if stop["outline"] < 2 or not stop["wide"] or not stop["high"]] == []
    assert len(stops) > 10


def test_the_skip_link_leads_to_the_content(tab, views):
    tab.goto(views["design"])
    tab.keyboard.press("Tab")
    assert tab.locator(".skip").bounding_box()["x"] >= 0  # comes into view
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "f-model"

"""How soon a page stands, and how soon it answers; measured by the browser itself."""

from statistics import median

import pytest

LOAD = """() => {
  const [page] = performance.getEntriesByType("navigation"), parts = performance.getEntriesByType("resource");
  return {load_ms: page.loadEventEnd, paint_ms: performance.getEntriesByName("first-paint")[0].startTime,
          num_requests: parts.length,
          num_blocking: parts.filter((one) => one.renderBlockingStatus === "blocking").length,
          bytes: [page, ...parts].reduce((sum, one) => sum + one.transferSize, 0)};
}"""

PAINTED = """async () => {
  const [page] = performance.getEntriesByType("navigation");
  while (!page.loadEventEnd || !performance.getEntriesByName("first-paint").length) {
    await new Promise((done) => setTimeout(done, 20));
  }
}"""

ANSWERS = """async ([input, kind, part, values]) => {
  const spent = [];
  for (const value of values) {
    const one = document.querySelector(input), place = document.querySelector(part);
    one.value = value;
    const changed = new Promise((done, fail) => {
      setTimeout(() => fail(new Error(`${input} = ${value}: no answer`)), 60000);
      const watch = new MutationObserver(() => { watch.disconnect(); done(performance.now()); });
      watch.observe(place, {childList: true});
    });
    const began = performance.now();
    one.dispatchEvent(new Event(kind, {bubbles: true}));
    spent.push(await changed - began);
    await new Promise((done) => setTimeout(done, 120));
  }
  return spent;
}"""

MAX_BYTES, MAX_LOAD_MS, MAX_PAINT_MS, MAX_ANSWER_MS = 300_000, 300, 200, 100
MAX_REQUESTS = 6
"""Scripts, the icon, and what the next page needs, fetched ahead."""

BUSY = 10
"""So many times longer a machine may take that does other things as well."""

PARTS = {
    "design": ("#f-tp", "input", "#design", ["2", "4", "8", "1"]),
    "sweep": ("#sweep-at", "input", "#sweep-point", ["3", "9", "20", "30"]),
    "compare": ("[id='f-b.tp']", "change", "#compared", ["2", "4", "8", "1"]),
    "papers": ("#q", "input", "#found", ["kv cache", "kv cache compression", "decode", "training at scale"]),
    "scorecard": ("#layer", "input", "#found", ["serving", "moe", "release", "training"]),
}


def loads(browser, address, times):
    """Figures of first visits, each with an empty cache."""
    found = []
    for _ in range(times):
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(address, wait_until="load")
            page.evaluate(PAINTED)
            found.append(page.evaluate(LOAD))
    return found


def check_first_page(browser, server, times, most_ms):
    found = loads(browser, f"{server}/", times)
    load_ms = median(one["load_ms"] for one in found)
    paint_ms = median(one["paint_ms"] for one in found)
    print(f"\nfirst page: {paint_ms:.0f} ms to first paint, {load_ms:.0f} ms to load, {found[0]['bytes']:,} bytes")
    assert 0 < max(one["bytes"] for one in found) < MAX_BYTES
    assert load_ms < most_ms
    assert paint_ms < most_ms * MAX_PAINT_MS / MAX_LOAD_MS
    assert max(one["num_requests"] for one in found) <= MAX_REQUESTS
    assert [one["num_blocking"] for one in found] == [0] * times


def check_page(browser, server, address, most_ms):
    found = loads(browser, f"{server}{address}", 3)
    paint_ms = median(one["paint_ms"] for one in found)
    print(f"\n{address[:50]}: {paint_ms:.0f} ms to first paint, {found[0]['bytes']:,} bytes")
    assert paint_ms < most_ms
    assert found[0]["bytes"] < MAX_BYTES


def check_answers(tab, views, name, rounds, most_ms):
    input, kind, part, values = PARTS[name]
    tab.goto(views[name])
    spent = sorted(tab.evaluate(ANSWERS, [input, kind, part, values * rounds]))
    middle = median(spent)
    print(f"\n{name}: {middle:.0f} ms from change to answer ({spent[0]:.0f} to {spent[-1]:.0f}, {len(spent)} times)")
    assert middle < most_ms


def test_the_first_page_stands_soon_and_is_small(browser, server):
    check_first_page(browser, server, 1, MAX_LOAD_MS * BUSY)


@pytest.mark.slow
def test_every_page_stands_soon(browser, server, view):
    check_page(browser, server, view, MAX_PAINT_MS * BUSY)


@pytest.mark.bench
def test_every_page_stands_within_200_ms(browser, server, view):
    check_page(browser, server, view, MAX_PAINT_MS)


OFTEN_ASKED = [pytest.param(n, marks=pytest.mark.slow) if n in ("papers", "scorecard") else n for n in PARTS]


@pytest.mark.parametrize("name", OFTEN_ASKED)
def test_a_change_is_answered_at_once(tab, views, name):
    check_answers(tab, views, name, 1, MAX_ANSWER_MS * BUSY)


@pytest.mark.bench
def test_the_first_page_stands_within_300_ms(browser, server):
    check_first_page(browser, server, 9, MAX_LOAD_MS)


@pytest.mark.bench
@pytest.mark.parametrize("name", PARTS)
def test_a_change_is_answered_within_100_ms(tab, views, name):
    check_answers(tab, views, name, 5, MAX_ANSWER_MS)


@pytest.mark.slow
def test_every_page_is_light(profile, views):
    page = profile(may_fail=True).new_page()
    for address in views.values():
        page.goto(address)
        assert page.evaluate(LOAD)["bytes"] < MAX_BYTES, address


def test_the_answer_stands_before_and_after_scripts(profile, tab):
    plain = profile(java_script_enabled=False).new_page()
    for page in (plain, tab):
        page.goto("/")
    tab.locator("#rows button").first.wait_for()
    for one, other in zip(plain.locator("#answer .v").all(), tab.locator("#answer .v").all(), strict=True):
        assert one.inner_text() == other.inner_text()
    names = plain.locator("#rows th").all_inner_texts()
    assert names == tab.locator("#rows th").all_inner_texts()[: len(names)]
    assert plain.locator("#chart .name").count() == tab.locator("#chart .name").count()


CHANGES = {
    "#tpot": "(one) => { one.value = 30; one.dispatchEvent(new Event('input', {bubbles: true})); }",
    "#y [data-v=usd]": "(one) => one.click()",
    "#bits [data-v='4']": "(one) => one.click()",
    "#vendor [data-v=AMD]": "(one) => one.click()",
}


def check_landing_changes(tab, most_ms):
    """From a change to the frame that shows it, as the browser counts."""
    tab.goto("/")
    tab.locator("#rows button").first.wait_for()
    spent = {
        at: tab.locator(at).evaluate(
            f"async (one) => {{ const began = performance.now(); ({change})(one);"
            " await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));"
            " return performance.now() - began; }"
        )
        for at, change in CHANGES.items()
    }
    print("\n" + ", ".join(f"{at}: {ms:.0f} ms" for at, ms in spent.items()))
    assert max(spent.values()) < most_ms


def test_a_change_of_the_first_page_is_drawn_at_once(tab):
    check_landing_changes(tab, MAX_ANSWER_MS * BUSY)


@pytest.mark.bench
def test_a_change_of_the_first_page_is_drawn_within_100_ms(tab):
    check_landing_changes(tab, MAX_ANSWER_MS)

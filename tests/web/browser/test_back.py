"""The browser's Back: an address is one step, and the page is that of its address, in whatever order answers come."""

import re

import pytest
from playwright.sync_api import expect

TOKEN = "#design .figures div:nth-child(1) dd"
CHANGED, AGAIN = re.compile("tp=2"), re.compile("tp=4")
SCRIPTS = re.compile(r"/static/.*\.js")


@pytest.fixture
def steps(tab, views):
    """A design whose tensor parallelism was set to 2, and its time per token before."""
    tab.goto(views["design"])
    before = tab.locator(TOKEN).inner_text()
    tab.get_by_label("Tensor parallel").fill("2")
    expect(tab).to_have_url(CHANGED)
    expect(tab.locator(TOKEN)).not_to_have_text(before, use_inner_text=True)
    return tab, before


def back(page):
    """Goes back, and waits for the address but not for the page."""
    with page.expect_event("framenavigated"):
        page.evaluate("setTimeout(() => history.back(), 0)")


def test_an_address_is_one_step_however_often_it_is_asked_for(steps):
    tab, before = steps
    field, length = tab.get_by_label("Tensor parallel"), tab.evaluate("history.length")
    with tab.expect_response(CHANGED):
        field.press("Enter")
    expect(tab.locator("#design-busy.htmx-request")).to_have_count(0)
    assert tab.evaluate("history.length") == length
    back(tab)
    expect(tab.locator(TOKEN)).to_have_text(before, use_inner_text=True)


def test_leaving_a_field_asks_nothing_that_its_input_asked_before(steps):
    tab, _ = steps
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.get_by_label("Tensor parallel").press("Tab")
    with tab.expect_response(AGAIN):
        tab.get_by_label("Tensor parallel").fill("4")
    assert [CHANGED.search(url) for url in asked if "/design?" in url] == [None]


def test_an_answer_that_comes_after_going_back_is_left(steps):
    tab, before = steps
    late, page = [], []

    def hold(route):
        (late if route.request.headers.get("hx-request") else page).append(route)

    tab.route(re.compile(r"/design\?"), hold)
    with tab.expect_request(AGAIN):
        tab.get_by_label("Tensor parallel").fill("4")
    with tab.expect_request(re.compile(r"/design\?")):
        back(tab)
    with tab.expect_event("requestfinished", lambda request: AGAIN.search(request.url)):
        late[0].continue_()
    tab.wait_for_timeout(100)
    assert not AGAIN.search(tab.url)  # nor is it a step of its own
    page[0].continue_()
    expect(tab.locator(TOKEN)).to_have_text(before, use_inner_text=True)


def test_going_back_before_the_scripts_have_run_shows_the_page_of_the_address(steps):
    tab, before = steps
    tab.route(SCRIPTS, lambda route: None)
    with tab.expect_request(re.compile("htmx")):
        tab.reload(wait_until="commit")
    expect(tab.locator(TOKEN)).not_to_have_text(before, use_inner_text=True)
    back(tab)
    tab.unroute(SCRIPTS)  # which lets those go that were held
    expect(tab.locator(TOKEN)).to_have_text(before, use_inner_text=True)
    assert not CHANGED.search(tab.url)

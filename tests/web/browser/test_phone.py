"""A phone of 390 x 844: a page is few screens long, and what is folded there opens."""

import pytest

from .test_accessible import opened

PHONE = {"width": 390, "height": 844}
MAX_SCREENS = {
    "design": 3.0,
    "training": 2.5,
    "what-if": 3.0,
    "infeasible": 2.0,
    "home": 2.6,
    "compare": 5.2,
    "papers of a day": 8.5,
}
SELDOM = [pytest.param(name, marks=pytest.mark.slow) for name in MAX_SCREENS if name != "design"]


def screens(page):
    """How many screens long a page is."""
    return page.evaluate("document.documentElement.scrollHeight") / PHONE["height"]


@pytest.mark.parametrize("name", ["design", *SELDOM])
def test_a_page_is_few_screens_long(profile, views, name):
    assert screens(opened(profile, views[name], viewport=PHONE)) <= MAX_SCREENS[name]


def test_a_part_of_the_docs_is_folded_and_a_link_into_it_opens_its_place(profile):
    page = opened(profile, "/docs/papers?part=serving", viewport=PHONE)
    assert screens(page) <= 8.0
    place = page.locator("summary > h3").first.get_attribute("id")
    page.goto(f"/docs/papers?part=serving#{place}")
    assert page.locator("details[open] > summary > h3").get_attribute("id") == place


@pytest.mark.slow
def test_a_design_over_several_devices_is_few_screens_long(profile, views):
    address = views["design"].replace("llama-3.1-8b", "llama-3.1-70b") + "&tp=4&weights=fp8&kv=fp8"
    assert screens(opened(profile, address, viewport=PHONE)) <= MAX_SCREENS["design"]


def test_what_a_phone_folds_opens_and_a_desk_shows_it(profile, views):
    phone, desk = opened(profile, views["design"], viewport=PHONE), opened(profile, views["design"])
    for page, is_seen in ((phone, False), (desk, True)):
        assert page.get_by_text("Longest context").is_visible() == is_seen
        assert page.get_by_label("Tensor parallel").is_visible() == is_seen
    for summary in ("Settings", "Weights take"):
        phone.locator("summary", has_text=summary).first.click()
    assert phone.get_by_text("Longest context").is_visible()
    assert phone.get_by_label("Tensor parallel").is_visible()

"""Suggestions while typing, by keyboard alone."""

from playwright.sync_api import expect


def test_arrows_choose_enter_takes_and_escape_closes(profile, server):
    page = profile().new_page()
    page.goto(f"{server}/papers/library")
    page.locator("#q").focus()
    page.keyboard.type("yinmin", delay=20)
    option = page.get_by_role("option", name="Yinmin Zhong")
    expect(option).to_be_visible()
    expect(page.locator("#q")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(option).to_be_hidden()
    page.keyboard.type(" z", delay=20)
    expect(option).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page.locator("#q")).to_have_value('author:"Yinmin Zhong"')
    expect(page.locator("#found h2")).to_contain_text("1 of")

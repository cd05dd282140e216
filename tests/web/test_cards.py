"""Cards: the pictures that stand for links to designs, comparisons, papers, days and commands' pages."""

import asyncio
from io import BytesIO

import pytest
from PIL import Image, ImageColor
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from orrery.evidence.paper_file import get_paper
from orrery.web.app import application
from orrery.web.cards import made
from orrery.web.cards.card import ShareCard
from orrery.web.cards.commands import command_card
from orrery.web.cards.drawn import picture
from orrery.web.cards.papers import paper_card
from orrery.web.cards.pen import ACCENT, HEIGHT_PX, WIDTH_PX, fitted, plain, width_px, wrapped
from orrery.web.command_pages import what_if
from orrery.web.place import place_at

DESIGN = "model=llama-3.1-8b&device=h100-sxm&input_tokens=512&output_tokens=64&concurrency=16"
LONG = "Unreasonably " * 60
MAX_BYTES = 60_000


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORRERY_LIBRARY", str(tmp_path_factory.mktemp("library") / "library.sqlite"))
        app = application(place_at(tmp_path_factory.mktemp("cards")))
        yield TestClient(app, base_url="http://127.0.0.1:8080")


def opened(content):
    found = Image.open(BytesIO(content))
    assert (found.format, found.size) == ("PNG", (WIDTH_PX, HEIGHT_PX))
    assert len(content) < MAX_BYTES
    return found.convert("RGB")


@pytest.mark.parametrize(
    ("page", "card"),
    [
        (f"/design?{DESIGN}", "design.png?model=llama-3.1-8b&amp;device"),
        ("/compare", "compare.png?a.model=llama-3.1-70b"),
        ("/papers/snapkv", "papers/snapkv.png"),
        ("/papers/day/2024-03", "papers/day/2024-03.png"),
        ("/what-if", "what-if.png"),
        ("/fleet", "fleet.png"),
    ],
)
def test_a_page_names_its_card_title_and_description(client, page, card):
    text = client.get(page).text
    assert f'property="og:image" content="http://127.0.0.1:8080/card/{card}' in text
    for name in ('property="og:title"', 'name="description"', 'property="og:description"'):
        (rest,) = text.split(f"<meta {name} content=")[1:]
        assert rest[0] == '"'
        assert rest[1] != '"', f"{name} is empty"


@pytest.mark.parametrize(
    "address", [f"design.png?{DESIGN}", "compare.png", "papers/snapkv.png", "papers/day/2024-03.png"]
)
def test_a_card_is_a_small_picture_and_the_second_time_it_is_there(client, address, monkeypatch):
    first = client.get(f"/card/{address}")
    assert first.headers["content-type"] == "image/png"
    assert "max-age" in first.headers["cache-control"]
    opened(first.content)
    monkeypatch.setattr(made, "picture", None)  # nothing is drawn again
    assert client.get(f"/card/{address}").content == first.content


def test_what_has_no_card_is_refused(client):
    for address, status in (
        ("plan.png", 404),
        ("papers/no-such-paper.png", 404),
        ("papers/day/yesterday.png", 404),
        ("design.png?model=/etc/passwd&device=h100-sxm", 422),
        (f"design.png?model={'x' * 3000}", 414),
    ):
        assert client.get(f"/card/{address}").status_code == status, address


def test_a_design_that_does_not_fit_says_so(client):
    fits, not_fits = (
        client.get(f"/card/design.png?device=h100-sxm&input_tokens=512&output_tokens=64&concurrency=16&model={model}")
        for model in ("llama-3.1-8b", "llama-3.1-405b")
    )
    blue = ImageColor.getrgb(ACCENT)
    inked = [sum(n for n, c in opened(x.content).getcolors(4096) if c == blue) for x in (fits, not_fits)]
    assert inked[0] > inked[1], "a number in blue only where there is one"


def test_words_stay_inside_and_cut_ones_end_in_dots():
    words, size_px = fitted(LONG, 400, (40, 20))
    assert size_px == 20
    assert words.endswith("…")
    assert width_px(words, 20) <= 400
    lines = wrapped(LONG, 400, 20, 3)
    assert len(lines) == 3
    assert all(width_px(line, 20) <= 400 for line in lines)
    assert wrapped("two words", 400, 20, 3) == ["two words"]
    assert plain("日本 <b>Jürgen</b> ≥ 2\u00d7") == "<b>Jurgen</b> >= 2x"
    rows = (tuple([LONG] * 5),) * 9
    right = opened(picture(ShareCard(kicker=LONG, title=LONG, number=LONG, beside=(LONG, LONG), text=LONG, rows=rows)))
    edge = {right.getpixel((x, y)) for x in range(WIDTH_PX - 40, WIDTH_PX) for y in range(0, HEIGHT_PX, 3)}
    assert len(edge) == 1, "nothing runs over the edge"


def test_a_papers_card_counts_its_verdicts_and_draws_its_curve():
    card = paper_card(get_paper("snapkv"))
    assert card.number.endswith("of 4")
    assert card.curve is not None
    assert all(0.0 <= x <= 1.0 and 0.0 <= y <= 1.0 for x, y in card.curve.points)
    without = paper_card(get_paper("adrs-barbarians"))
    assert (without.number, without.curve) == ("", None)


def test_a_commands_card_has_the_rows_of_its_page():
    row = {"frac": 0.25, "low_80": 0.1, "high_80": 0.4}
    plain = {
        "results": [
            {
                "technique": "fp8-weights",
                "outcome": "changes",
                "verdict": "likely helps",
                "metric": "tpot_s",
                "because": "",
                "command": "",
                "without": {"tpot_s": 0.02},
                "with": {"tpot_s": 0.025},
                "difference": {"tpot_s": row},
                "break_even": None,
                "gains": "",
                "costs": "",
                "must_be_measured": [],
            }
        ]
    }
    card = command_card(what_if.PAGE, {"model": "m", "concurrency": "4"}, plain)
    assert card.title == "fp8-weights"
    assert "+25" in card.text
    assert card.rows[0][1:3] == ("20 ms", "25 ms")
    assert card.foot[1] == "m, 4 in flight"


def test_too_many_cards_at_once_are_refused(monkeypatch):
    monkeypatch.setattr(made, "MAX_WAITING", 2)

    async def ask_all():
        cards, go = made.Cards(), asyncio.Event()

        async def content():
            await go.wait()
            return ShareCard(kicker="a", title="b")

        waiting = [asyncio.ensure_future(cards.picture(f"{n}", content)) for n in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HTTPException, match="Too many"):
            await cards.picture("third", content)
        go.set()
        await asyncio.gather(*waiting)
        return await cards.picture("third", content)

    assert asyncio.run(ask_all()).startswith(b"\x89PNG")

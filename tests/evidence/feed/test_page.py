"""Pages saved as text: both layouts, every paper, and what is odd left out with a reason."""

import json
import os
from datetime import date
from pathlib import Path

import pytest

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.file import read_document, read_file
from orrery.evidence.feed.page import read_page
from orrery.evidence.feed.text import title_id, title_key

TODAY = date(2026, 11, 22)
ROOT = Path(__file__).parents[3]
BESIDE = Path(os.environ.get("ORRERY_DATA", ROOT.parent / "shared" / "data")).parent
PAGES = sorted(BESIDE.glob("*/*.txt"))
LABELS = [path for path in BESIDE.glob("*.json") if path.read_text(encoding="utf-8")[:400].count('"title"')]
needs_pages = pytest.mark.skipif(not (PAGES and LABELS), reason="no pages beside the repository (set ORRERY_DATA)")

ABSTRACT = "We serve tokens from a cold store. " * 10
BROWSER = f"""new

Get trending papers in your email inbox!

Subscribe

Daily Papers

byAK and the research community

Nov 21

Cold Tokens: Serving From the Attic

{ABSTRACT}

  • 7 authors
·
Aug 18 3

Warm Tokens: Serving From the Cellar

{ABSTRACT}

acme Acme Research
·
Mar 2, 2024

No Word on Who or When

{ABSTRACT}

"""


def test_a_browsers_text_gives_authors_organisation_date_and_comments():
    cold, warm, bare = read_page(BROWSER, "page", TODAY).entries
    assert (cold.title, cold.num_authors, cold.published, cold.num_comments) == (
        "Cold Tokens: Serving From the Attic",
        7,
        date(2026, 8, 18),
        3,
    )
    assert (warm.organisation, warm.num_authors, warm.published) == ("Acme Research", 0, date(2024, 3, 2))
    assert (warm.num_comments, warm.num_votes) == (None, None)
    assert (bare.published, bare.num_authors, bare.abstract) == (None, 0, ABSTRACT.strip())
    assert cold.id == title_id("cold tokens - serving from the ATTIC!")


def test_authors_without_a_date_belong_to_the_abstract_above_them():
    """With the dot of the missing date below them, without it, and on the last line of the page."""
    text = f"One\n{ABSTRACT}\n  • 7 authors\n·\nTwo\n{ABSTRACT}\n  • 1 authors\nThree\n{ABSTRACT}\n  • 4 authors"
    read = read_page(text, "page", TODAY)
    assert [(e.title, e.num_authors, e.published) for e in read.entries] == [
        ("One", 7, None),
        ("Two", 1, None),
        ("Three", 4, None),
    ]
    assert not read.skipped


def test_a_bare_alternation_with_a_word_glued_to_its_first_title():
    text = f"Get trending papers in your email inbox!\nSubscribeCold Tokens\n{ABSTRACT}\nWarm Tokens\n{ABSTRACT}"
    assert [e.title for e in read_page(text, "page", TODAY).entries] == ["Cold Tokens", "Warm Tokens"]


def test_a_date_without_a_year_is_of_the_pages_year():
    assert read_page(BROWSER, "page", TODAY, year=2025).entries[0].published == date(2025, 8, 18)
    assert read_page(BROWSER, "page", date(2026, 3, 1)).entries[0].published == date(2025, 8, 18), "not in the future"
    dated = "".join(f"Paper {y}\n\n{ABSTRACT}\n\n  • 1 authors\n·\nMay 1, {y}\n\n" for y in range(2018, 2024))
    page = read_page(dated + BROWSER.split("Nov 21")[1], "page", TODAY)
    assert page.entries[6].published == date(2025, 8, 18), "the year after the latest that is written out"
    assert read_page(BROWSER.replace("Aug 18 3", "Feb 30 3"), "page", TODAY).entries[0].published is None


def test_what_has_no_partner_is_left_out_with_a_reason():
    text = f"{ABSTRACT}\nA Title Without Anything\nCold Tokens\n{ABSTRACT}\nA Last Title"
    read = read_page(text, "page", TODAY)
    assert [e.title for e in read.entries] == ["Cold Tokens"]
    reasons = " ".join(map(str, read.skipped))
    assert "an abstract without a title" in reasons
    assert "'A Title Without Anything' has no abstract" in reasons
    assert "'A Last Title' has no abstract" in reasons
    assert "holds no title" in str(read_page("", "page", TODAY).skipped[0])


def test_markup_and_terminal_codes_do_not_come_through():
    text = f"\x1b[31mRed\x1b[0m <b>Title</b>\u202e&amp; more\x07\n{ABSTRACT}<script>alert('x')</script>\x9b2J"
    (entry,) = read_page(text, "page", TODAY).entries
    assert entry.title == "Red Title& more"
    assert entry.abstract == ABSTRACT.strip()


def test_encodings_and_kinds_of_files(tmp_path):
    path = tmp_path / "page.txt"
    for encoding in ("utf-8-sig", "utf-16", "cp1252"):
        path.write_bytes(f"Mélange\n{ABSTRACT}".encode(encoding))
        assert [e.title for e in read_file(path, TODAY).entries] == ["Mélange"], encoding
    with pytest.raises(FeedError, match="save it as text"):
        read_document(b"<html><body>x</body></html>", "x.html", TODAY)
    with pytest.raises(FeedError, match="There is no file"):
        read_file(tmp_path / "none.txt", TODAY)


@needs_pages
def test_every_paper_of_the_real_pages_is_read():
    read = [read_file(path, TODAY) for path in PAGES]
    assert [r.skipped for r in read] == [()] * len(PAGES)
    found = {title_key(e.title): e for r in read for e in r.entries}
    (labels,) = (json.loads(path.read_text(encoding="utf-8")) for path in LABELS)
    assert found.keys() == {title_key(label["title"]) for label in labels}
    assert len(found) == 213
    assert [len(r.entries) for r in read] == [36, 64, 72, 78]
    every = [e for r in read for e in r.entries]
    assert sum(e.num_authors > 0 for e in every) == 57 + 75
    assert sum(e.published is not None for e in every) == 59 + 75
    assert sum(e.num_comments is not None for e in every) == 10 + 14
    assert sorted(e.organisation for e in every if e.organisation) == ["NVIDIA", "Zyphra"]
    by_title = {e.title: e for e in every}
    nvfp4 = by_title["Pretraining Large Language Models with NVFP4"]
    assert (nvfp4.organisation, nvfp4.published, nvfp4.num_comments) == ("NVIDIA", date(2025, 9, 29), 2)
    assert max(e.published for e in every if e.published).year == 2025

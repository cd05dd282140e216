"""Papers in a browser: found, read, marked, and held against the reader's own deployment."""

import csv
import html
import io
import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from xml.etree import ElementTree

import pytest
from starlette.testclient import TestClient

from orrery.evidence.digest.subscription import Subscriptions
from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.marks import read_marks
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store
from orrery.evidence.verdict import VERDICTS
from orrery.web.app import application

TODAY = date.today()
HTMX = {"hx-request": "true"}

ENTRIES = (
    Entry(
        id="2611.00001",
        title="Chunked prefill at rest",
        source="arXiv",
        published=TODAY,
        num_authors=1,
        authors=("Ann",),
        url="https://arxiv.org/abs/2611.00001",
        categories=("cs.DC",),
        abstract="We split prompts into chunks beside decodes. Throughput improves by 2.1x over vLLM.",
    ),
    Entry(
        id="2611.00002",
        title="Gossip among trees",
        source="arXiv",
        published=TODAY - timedelta(days=3),
        abstract="A survey of trees.",
    ),
)


@pytest.fixture
def client(place):
    return TestClient(application(place), base_url="http://127.0.0.1")


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "library" / "library.sqlite"
    with Store(path) as store:
        save_entries(store, ENTRIES, TODAY)
    return path


def titles(page):
    heads = re.findall(r'<h3><a href="[^"]*">(.*?)</a></h3>', page.text)
    return [html.unescape(re.sub("</?mark>", "", head)) for head in heads]


# -- the library -----------------------------------------------------------------------------------------------------


def test_the_library_lists_every_paper_a_page_at_a_time(client):
    first, second = client.get("/papers/library"), client.get("/papers/library?page=2")
    assert "213 of 213 papers" in first.text
    assert len(titles(first)) == len(titles(second)) == 25
    assert not set(titles(first)) & set(titles(second))
    assert len(first.content) < 200_000


def test_the_list_is_quick_once_it_was_read(client):
    client.get("/papers?q=kv+cache")
    for address in ("/papers/library", "/papers?q=kv+cache+off"):
        took_s = min(timed(client, address) for _ in range(3))
        assert took_s < 0.3, address


def timed(client, address):
    started_s = time.perf_counter()
    client.get(address)
    return time.perf_counter() - started_s


def test_a_search_finds_by_meaning_and_says_why(client):
    found = client.get("/papers", params={"q": "long prompts stall the decodes that are running"}, headers=HTMX)
    assert titles(found)[0].startswith("Taming Throughput-Latency Tradeoff")
    assert "Found by: " in found.text
    assert "<html" not in found.text  # only the part that is swapped
    assert re.search(r"\d+ of \d+ claims reproduced", found.text)


def test_a_search_marks_its_words_and_a_list_marks_none(client):
    found = client.get("/papers", params={"q": "kv cache compression"}, headers=HTMX)
    assert "<mark>" in found.text
    assert any(title.startswith("SnapKV") for title in titles(found)[:2])
    assert "<mark>" not in client.get("/papers/library?layer=moe").text


def test_filters_narrow_and_a_wrong_one_is_said_in_its_place(client):
    serving = client.get("/papers?layer=serving&device=a100")
    assert 0 < len(titles(serving)) < 25
    wrong = client.get("/papers?layer=servin&q=cache")
    assert wrong.status_code == 422
    assert "did you mean" in wrong.text
    assert 'value="cache"' in wrong.text  # what was typed stays


def test_a_list_is_handed_out(client):
    rows = list(csv.DictReader(io.StringIO(client.get("/papers?layer=moe&format=csv").text)))
    papers = client.get("/papers?layer=moe&format=json").json()["papers"]
    assert [row["key"] for row in rows] == [paper["key"] for paper in papers]
    assert {paper["layer"] for paper in papers} == {"moe"}
    assert {"num_reproduced", "num_not_reproduced"} <= papers[0].keys()


def test_new_papers_are_found_beside_the_library(client, library):
    assert titles(client.get("/papers/search?q=chunked+prefill+at+rest"))[0] == "Chunked prefill at rest"
    assert "Chunked prefill at rest" not in client.get("/papers?q=chunked+prefill+at+rest").text
    with Store(library) as store:  # the index follows the library
        save_entries(store, [Entry(id="2611.00003", title="Quokka scheduling", abstract="", source="arXiv")], TODAY)
    assert titles(client.get("/papers/search?q=quokka"))[0] == "Quokka scheduling"


# -- one paper -------------------------------------------------------------------------------------------------------


def test_an_entry_tells_all_that_is_known(client):
    page = client.get("/papers/distserve")
    heads = re.findall(r"<h2>(.*?)</h2>", page.text)
    first = page.text[page.text.index('class="card headline"') : page.text.index("<h2>Method</h2>")]
    assert re.findall(r"<dt>(.*?)</dt>", first) == [
        "The paper claims",
        "Computed here, for its set-up",
        "On your deployment",
    ]
    assert "<strong>up to 4.48</strong>" in first
    assert heads == [
        "Method",
        "Use it on your deployment",
        "Benefits and costs",
        "Sensitivity",
        "Claims: reported vs predicted",
        "Effect on my deployment",
        "Unstated settings",
        "Related",
    ]
    assert re.search(r"Helps (for input tokens above|in this range)", page.text)
    assert page.text.count("<svg") >= 3
    assert "https://arxiv.org/abs/2401.09670" in page.text
    assert all(
        'rel="noopener noreferrer external"' in link for link in re.findall(r'<a [^>]*href="http[^>]*>', page.text)
    )
    assert len(page.content) < 300_000


def test_an_arxiv_id_leads_to_the_entry_and_anything_else_to_no_page(client):
    assert "DistServe" in client.get("/papers/2401.09670").text
    for key in ("distserv", "../../pyproject", "%2e%2e%2fdistserve", "x" * 400, "a%00b", "mark"):
        assert client.get(f"/papers/{key}").status_code == 404, key


def test_an_entry_is_handed_out(client):
    assert client.get("/papers/distserve?format=json").json()["key"] == "distserve"
    assert client.get("/papers/distserve?format=bibtex").text.startswith("@misc{distserve,")


def test_a_new_paper_shows_what_is_understood_with_how_sure_that_is(client, library):
    page = client.get("/papers/2611.00001").text
    assert "chunked-prefill" in page
    assert re.search(r"chunked-prefill</a> \(\d+ % sure\)", page)
    assert "throughput ratio against vLLM" in page
    assert "2.1" in page
    assert "Nothing of it is run again" in page


# -- marks -----------------------------------------------------------------------------------------------------------


def test_a_mark_without_script_comes_back_to_the_page_and_is_what_the_commands_see(client, tmp_path):
    back = "/papers?layer=serving"
    form = {"key": "distserve", "what": "upvoted", "on": "1", "back": back}
    answer = client.post("/papers/mark", data=form, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, back)
    with Store(tmp_path / "library" / "library.sqlite") as store:
        assert read_marks(store).upvoted == {"2401.09670"}
    assert 'id="upvoted-distserve" aria-pressed="true"' in client.get("/papers/distserve").text


def test_a_mark_with_script_swaps_its_own_button(client, library):
    form = {"key": "2611.00001", "what": "read", "on": "1", "back": "/papers/day"}
    button = client.post("/papers/mark", data=form, headers=HTMX).text
    assert 'aria-pressed="true"' in button
    assert 'name="on" value="0"' in button  # pressed again it takes the mark back
    assert button.strip().startswith("<form")
    client.post("/papers/mark", data={**form, "on": "0"}, headers=HTMX)
    with Store(library) as store:
        assert read_marks(store).read == frozenset()


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/papers\\@evil", "/papers\r\nx: y", ""])
def test_a_mark_leads_back_to_pages_of_papers_alone(client, back):
    form = {"key": "distserve", "what": "read", "on": "1", "back": back}
    assert client.post("/papers/mark", data=form, follow_redirects=False).headers["location"] == "/papers"


def test_what_does_not_exist_is_neither_marked_nor_followed(client):
    assert client.post("/papers/mark", data={"key": "no-paper", "what": "read", "on": "1"}).status_code == 422
    assert client.post("/papers/mark", data={"key": "distserve", "what": "id", "on": "1"}).status_code == 422
    assert client.post("/papers/follow", data={"kind": "layer", "name": "servin", "on": "1"}).status_code == 422
    other = {"sec-fetch-site": "cross-site"}
    assert client.post("/papers/mark", data={"key": "distserve"}, headers=other).status_code == 403


def test_what_is_followed_goes_first(client, library):
    def first():
        return titles(client.get("/papers/trending?by=week"))[0]

    assert first() == "Chunked prefill at rest"
    client.post("/papers/follow", data={"kind": "words", "name": "gossip among trees", "on": "1"})
    assert first() == "Gossip among trees"
    assert "gossip among trees" in client.get("/papers/trending").text
    client.post("/papers/follow", data={"kind": "words", "name": "gossip among trees", "on": "0"})
    assert first() == "Chunked prefill at rest"


def test_two_tabs_do_not_disturb_each_other(client, tmp_path):
    """On a library that is not there yet: made, marked and read by many at once."""
    keys = ("distserve", "sarathi-serve", "splitwise", "holmes", "fuyou", "snapkv", "zo2", "glm-130b")

    def ask(key):
        marked = client.post("/papers/mark", data={"key": key, "what": "read", "on": "1"}, headers=HTMX)
        return marked.status_code, client.get("/papers/day").status_code, client.get("/papers").status_code

    with ThreadPoolExecutor(8) as tabs:
        assert set(tabs.map(ask, keys)) == {(200, 200, 200)}
    with Store(tmp_path / "library" / "library.sqlite") as store:
        assert len(read_marks(store).read) == len(keys)


# -- new papers ------------------------------------------------------------------------------------------------------


def test_days_lead_to_the_days_beside_them(client, library):
    latest = client.get("/papers/day").text
    before = TODAY - timedelta(days=3)
    assert "Chunked prefill at rest" in latest
    assert f'rel="prev" href="/papers/day/{before.isoformat()}"' in latest
    assert 'rel="next"' not in latest
    earlier = client.get(f"/papers/day/{before.isoformat()}").text
    assert "Gossip among trees" in earlier
    assert f'rel="next" href="/papers/day/{TODAY.isoformat()}"' in earlier
    empty = client.get(f"/papers/day/{(TODAY - timedelta(days=1)).isoformat()}")
    assert "No paper of that day" in empty.text
    assert client.get("/papers/day/yesterday").status_code == 404


def test_an_empty_library_says_how_to_fill_it(client):
    assert "orrery papers fetch" in client.get("/papers").text
    assert client.get("/papers/trending").status_code == 200
    assert client.get("/papers/trending?by=year").status_code == 422
    assert client.get("/papers/trending?layer=nothing").status_code == 422


# -- claims ----------------------------------------------------------------------------------------------------------


def test_the_scorecard_counts_every_claim_and_narrows(client):
    whole = client.get("/papers/scorecard?format=json").json()["claims"]
    page = client.get("/papers/scorecard").text
    assert f"{len(whole):,} claims reproduced" in page
    assert page.index("claims reproduced") < page.index("What the verdicts mean")  # one number first
    misses = client.get("/papers/scorecard?layer=moe&verdict=not reproduced&format=json").json()["claims"]
    assert 0 < len(misses) < len(whole)
    assert {claim["verdict"] for claim in misses} == {"not reproduced"}
    narrowed = client.get("/papers/scorecard?layer=moe&verdict=not reproduced", headers=HTMX).text
    assert f"{len(misses)} claims" in narrowed
    assert "<svg" in narrowed
    rows = list(csv.DictReader(io.StringIO(client.get("/papers/scorecard?layer=moe&format=csv").text)))
    assert {row["verdict"] for row in rows} <= set(VERDICTS)
    assert client.get("/papers/scorecard?verdict=maybe").status_code == 422
    assert client.get("/papers/scorecard?format=svg").text.startswith("<svg")


# -- the digest ------------------------------------------------------------------------------------------------------


def test_a_subscription_is_kept_where_the_commands_keep_it(client, library):
    form = {
        "address": "me@example.org",
        "layer": ["serving", "moe"],
        "technique": "chunked-prefill, disaggregated",
        "search": "kv cache\n\nlong prompts",
        "by": "day",
    }
    assert client.post("/papers/subscribe", data=form, follow_redirects=False).status_code == 303
    with Store(library) as store:
        (retained,) = Subscriptions(store).all("active")
    assert retained.address == "me@example.org"
    assert retained.selection.techniques == ("chunked-prefill", "disaggregated")
    assert retained.selection.searches == ("kv cache", "long prompts")
    assert "me@example.org" in client.get("/papers/subscribe").text
    client.post("/papers/subscribe", data={"address": "me@example.org", "what": "end"})
    with Store(library) as store:
        assert not Subscriptions(store).all("active")


@pytest.mark.parametrize(
    "wrong",
    [{"address": "nobody"}, {"layer": "nothing"}, {"technique": "magic"}, {"by": "year"}, {"search": "x" * 300}],
)
def test_a_wrong_subscription_is_refused_and_what_was_typed_stays(client, wrong):
    answer = client.post("/papers/subscribe", data={"address": "ann@example.org", **wrong})
    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert wrong.get("address", "ann@example.org") in answer.text


def test_the_letter_is_looked_at_in_a_frame_of_its_own(client, library):
    page = client.get("/papers/subscribe?technique=chunked-prefill").text
    (frame,) = re.findall(r'<iframe [^>]*sandbox="([^"]*)" srcdoc="([^"]*)"', page)
    assert "allow-scripts" not in frame[0]
    assert "Chunked prefill at rest" in html.unescape(frame[1])
    assert "Chunked prefill at rest" in client.get("/papers/subscribe?as=text").text


def test_the_feed_is_atom(client, library):
    feed = client.get("/papers/feed.atom?by=month&search=chunks")
    assert feed.headers["content-type"].startswith("application/atom+xml")
    found = ElementTree.fromstring(feed.text).findall("{http://www.w3.org/2005/Atom}entry")
    assert [one.find("{http://www.w3.org/2005/Atom}title").text for one in found] == ["Chunked prefill at rest"]


# -- the reader's own deployment -------------------------------------------------------------------------------------


def test_suggestions_are_names_of_the_library(client):
    found = client.get("/papers/suggest?q=yinmin").json()
    assert found == [{"query": 'author:"Yinmin Zhong"', "text": "Yinmin Zhong", "kind": "author", "num": 1}]
    assert client.get("/papers/suggest").json() == []
    assert client.get("/papers/suggest", params={"q": "<script>" * 100}).json() == []


def test_a_search_says_which_conditions_it_has_met(client):
    page = client.get("/papers/library", params={"q": "throughput > 20x"}).text
    assert "Only papers with a claim of throughput &gt; 20 ratio." in page
    assert "/papers/moe-lens" in page
    wrong = client.get("/papers/library", params={"q": "througput > 20x"})
    assert wrong.status_code == 422
    assert "did you mean &#39;throughput&#39;" in wrong.text

"""New papers fetched from the page: a button, progress, what was left out, and a schedule."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from starlette.testclient import TestClient

from orrery.web.app import application
from orrery.web.papers.fetching import Fetching
from orrery.web.place import place_at

ENTRY = """<entry><id>http://arxiv.org/abs/2611.00001v1</id><title>Caches of tomorrow</title>
<updated>2026-11-20T10:00:00Z</updated><published>2099-11-20T10:00:00Z</published>
<summary>A KV cache that is 2x smaller.</summary><author><name>Ada B</name></author>
<category term="cs.DC"/></entry>"""
FEED = f"""<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"
 xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"><id>x</id>
<title>q</title><opensearch:totalResults>1</opensearch:totalResults>{ENTRY}</feed>""".encode()

PAGE = {
    "id": "2611.00001",
    "title": "Caches of tomorrow",
    "summary": "A KV cache that is 2x smaller.",
    "upvotes": 87,
    "organization": {"fullname": "<b>Ada's</b> Laboratory"},
    "githubRepo": "https://github.com/ada/caches",
}


class Lists(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.release.wait(10)
        status, body = self.server.answers.get(self.path.split("?")[0], (404, b""))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def lists():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Lists)
    server.release = threading.Event()
    server.release.set()
    server.answers = {
        "/arxiv": (200, FEED),
        "/daily": (404, b""),
        "/pages/2611.00001": (200, json.dumps(PAGE).encode()),
    }
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(tmp_path, lists):
    place = place_at(tmp_path, tmp_path / "library.sqlite")
    app = application(place)
    url = f"http://127.0.0.1:{lists.server_port}"
    app.state.fetching = Fetching(place=place, bases={name: f"{url}/{name}" for name in ("arxiv", "daily", "pages")})
    with TestClient(app, base_url="http://127.0.0.1") as found:
        yield found


PART = {"hx-request": "true"}


def fetching(client):
    return client.app.state.fetching


def test_a_fetch_shows_its_progress_and_then_the_new_papers(client, lists):
    assert "Fetch new papers" in client.get("/papers").text
    lists.release.clear()
    begun = client.post("/papers/fetch", data={"source": "arxiv"}, headers=PART).text
    assert 'hx-get="/papers/fetch"' in begun
    assert "Fetching from arXiv" in begun
    assert "<progress" in client.get("/papers/fetch", headers=PART).text
    lists.release.set()
    fetching(client).wait()
    done = client.get("/papers/fetch", headers=PART).text
    assert "hx-trigger" not in done
    assert "arXiv: 1 new, 0 updated, 0 known already." in done
    assert "Show 1 new paper<" in done
    assert "Caches of tomorrow" in client.get("/papers").text


def test_what_cannot_be_read_is_said_and_the_rest_is_kept(client):
    client.post("/papers/fetch", data={"source": ["daily", "arxiv"]}, headers=PART)
    fetching(client).wait()
    done = client.get("/papers/fetch", headers=PART).text
    assert "Hugging Face daily papers was not read to its end" in done
    assert "404" in done
    assert "arXiv: 1 new" in done


def test_what_a_page_says_of_a_paper_stands_on_its_card_with_its_source(client):
    for source in ("arxiv", "pages"):
        client.post("/papers/fetch", data={"source": source}, headers=PART)
        fetching(client).wait()
    assert "and says more of 1" in fetching(client).progress.messages[-1]
    for page in ("/papers", "/papers/2611.00001"):
        text = client.get(page).text
        assert "Ada&#39;s Laboratory" in text
        assert "87 votes <small" in text
        assert 'href="https://huggingface.co/papers/2611.00001"' in text
        assert (
            '<a href="https://github.com/ada/caches" rel="noopener noreferrer external">code (Hugging Face) ↗</a>'
            in text
        )


def test_one_fetch_at_a_time(client, lists):
    lists.release.clear()
    client.post("/papers/fetch", data={"source": "arxiv"}, headers=PART)
    client.post("/papers/fetch", data={"source": "arxiv"}, headers=PART)
    lists.release.set()
    fetching(client).wait()
    assert fetching(client).progress.messages == ("arXiv: 1 new, 0 updated, 0 known already.",)


def test_without_script_the_page_of_papers_comes_back(client):
    answer = client.post("/papers/fetch", data={"source": "arxiv"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/papers")
    assert client.get("/papers/fetch", follow_redirects=False).headers["location"] == "/papers"
    fetching(client).wait()


@pytest.mark.parametrize(
    ("source", "message"), [("nowhere", "write arxiv or daily or scholar"), ("", "write arxiv or daily")]
)
def test_other_sources_are_refused(client, source, message):
    answer = client.post("/papers/fetch", data={"source": source})
    assert answer.status_code == 422
    assert message in answer.text
    assert client.post("/papers/fetch", data={}).status_code == 422
    assert not fetching(client).progress.is_running


def test_other_sites_cannot_begin_one(client):
    answer = client.post(
        "/papers/fetch", data={"source": "arxiv"}, headers={"sec-fetch-site": "cross-site", "origin": "https://x.org"}
    )
    assert answer.status_code == 403


def test_a_schedule_begins_with_the_server_and_ends_with_it(tmp_path):
    timed = Fetching(
        place=place_at(tmp_path, tmp_path / "library.sqlite"),
        every_s=0.36,
    )
    starts = []
    timed.start = lambda sources: starts.append(sources)
    timed.begin()
    until_s = time.monotonic() + 10.0
    while len(starts) < 3 and time.monotonic() < until_s:
        time.sleep(0.01)
    timed.end()
    assert starts[:3] == [("arxiv", "daily")] * 3
    time.sleep(0.5)
    num_starts = len(starts)
    time.sleep(0.8)
    assert len(starts) == num_starts
    never = Fetching(place=timed.place)
    never.start = timed.start
    never.begin()
    assert len(starts) == num_starts

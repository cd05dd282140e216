"""A server that answers as it is told, a clock that nobody waits for, and papers in the formats of the real sources."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from orrery.evidence.feed.pace import Clock
from orrery.evidence.feed.store import Store


class Server(ThreadingHTTPServer):
    """Replies by path: each a list that is used up from the front, its last one again and again."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies, self.inputs, self.bodies = {}, [], []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def tell(self, path, *replies):
        self.replies[path] = list(replies)

    def handle_error(self, request, client_address):
        """A client that hangs up is part of the play."""


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.do_GET()

    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.inputs.append((self.path, dict(self.headers)))
        waiting = self.server.replies[path]
        reply = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if callable(reply):
            reply = reply(self)
        status, headers, body = reply
        if headers.get("ETag") and self.headers.get("If-None-Match") == headers["ETag"]:
            status, body = 304, b""
        cut = headers.pop("Cut", None)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: int(cut)] if cut else body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


class FakeTime:
    """Waiting moves the hands, and is written down."""

    def __init__(self):
        self.now, self.waits = 1000.0, []

    def wait(self, seconds):
        self.waits.append(seconds)
        self.now += seconds

    @property
    def clock(self):
        return Clock(now_s=lambda: self.now, wait_s=self.wait)


@pytest.fixture
def store(tmp_path):
    """A reader's library, without papers."""
    with Store(tmp_path / "library.sqlite") as store:
        yield store


@pytest.fixture
def fake_time():
    return FakeTime()


def atom_entry(id, title="A title", abstract="It is 2x faster.", version=1, published="2026-11-20"):
    """One entry as arXiv's API writes it."""
    return f"""<entry><id>http://arxiv.org/abs/{id}v{version}</id><title>{title}</title>
<updated>{published}T10:00:00Z</updated><published>{published}T10:00:00Z</published><summary>{abstract}</summary>
<author><name>Ada B</name></author><author><name>Cy D</name></author>
<arxiv:comment>9 pages</arxiv:comment><arxiv:primary_category term="cs.DC"/><category term="cs.LG"/>
<category term="cs.DC"/><link href="http://arxiv.org/abs/{id}v{version}" rel="alternate" type="text/html"/></entry>"""


def atom(*entries, total=None):
    """A page of arXiv's API."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"
 xmlns="http://www.w3.org/2005/Atom"><id>x</id><title>arXiv Query</title>
<opensearch:totalResults>{len(entries) if total is None else total}</opensearch:totalResults>
{"".join(entries)}</feed>""".encode()


@pytest.fixture
def arxiv():
    """How to write arXiv's answers."""
    return type("Arxiv", (), {"entry": staticmethod(atom_entry), "feed": staticmethod(atom)})

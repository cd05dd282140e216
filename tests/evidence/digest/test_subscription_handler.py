"""The pages: a subscription starts by letter, ends with one click, and nobody learns who subscribes."""

import http.client
import re
import socket
import threading
from urllib.parse import urlencode

import pytest

from orrery.base.errors import ScenarioError
from orrery.evidence.digest import server as servers
from orrery.evidence.digest.server import serve
from orrery.evidence.digest.subscription import SubscriptionFilter, Subscriptions
from orrery.evidence.digest.subscription_handler import SubscriptionHandler

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Site:
    """A running desk, and the letters that it sent."""

    def __init__(self, store, sender):
        self.letters = []
        self.desk = SubscriptionHandler(store.path, sender, lambda letter: self.letters.append(letter))
        self.server = serve(self.desk)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()

    def ask(self, method, path, body=None, headers=FORM):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        connection.request(method, path, urlencode(body) if isinstance(body, dict) else body, headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply, text

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def site(store, sender):
    site = Site(store, sender)
    yield site
    site.close()


def state(store, address="ann@example.org"):
    return Subscriptions(store).find(address).state


def token_of(letter):
    return re.search(r"token=([\w-]+)", letter.get_content())[1]


def test_from_the_form_to_the_last_click(site, store):
    reply, _ = site.ask("POST", "/subscribe", {"address": "ann@example.org", "layers": "moe, serving"})
    assert reply.status == 202
    assert state(store) == "pending"
    (letter,) = site.letters
    token = token_of(letter)
    reply, text = site.ask("GET", f"/confirm?token={token}")
    assert (reply.status, state(store)) == (200, "pending"), "a program that checks links confirms nothing"
    assert f'action="confirm?token={token}"' in text
    assert site.ask("POST", f"/confirm?token={token}", {})[0].status == 200
    assert state(store) == "active"
    assert Subscriptions(store).find("ann@example.org").selection.layers == ("moe", "serving")


def test_one_click_ends_it_for_good(site, store, sender):
    ann = Subscriptions(store).ask("ann@example.org", SubscriptionFilter(), "active")
    from orrery.evidence.digest.tokens import Tokens

    tokens = Tokens(store)
    leave, confirm = tokens.make("leave", ann.id), tokens.make("confirm", ann.id)
    for _ in range(2):  # mail programs may try twice
        reply, _ = site.ask("POST", f"/unsubscribe?token={leave}", {"List-Unsubscribe": "One-Click"})
        assert (reply.status, state(store)) == (200, "ended")
    assert site.ask("POST", f"/confirm?token={confirm}", {})[0].status == 400
    assert state(store) == "ended"


def test_answers_do_not_tell_who_subscribes(site, store):
    Subscriptions(store).ask("ann@example.org", SubscriptionFilter(layers=("moe",)), "active")
    known = site.ask("POST", "/subscribe", {"address": "ann@example.org", "layers": "serving"})
    unknown = site.ask("POST", "/subscribe", {"address": "bob@example.org", "layers": "serving"})
    assert (known[0].status, known[1]) == (unknown[0].status, unknown[1])
    again, first = site.letters
    assert (again["To"], first["To"]) == ("ann@example.org", "bob@example.org"), "nor does the time that it takes"
    assert "It is, every week, and nothing has changed" in again.get_content()
    assert "confirm" not in again.get_content()
    assert Subscriptions(store).find("ann@example.org").selection.layers == ("moe",), "a stranger changes nothing"


def test_a_client_causes_few_letters(site, store):
    statuses = [site.ask("POST", "/subscribe", {"address": f"a{i}@example.org"})[0].status for i in range(7)]
    assert statuses == [202] * 5 + [429] * 2
    assert len(site.letters) == 5


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/subscribe", {"address": "nonsense"}, 400),
        ("/subscribe", {"address": "a@b.cd", "frequency": "hour"}, 400),
        ("/subscribe", {"address": "a@b.cd\r\nBcc: x@y.zz"}, 400),
        ("/subscribe", {"address": "a" * 5000}, 413),
        ("/subscribe", "&".join(f"a{i}=1" for i in range(500)), 400),
        ("/confirm?token=x", {}, 400),
        ("/unsubscribe", {}, 400),
        ("/nowhere", {}, 404),
        ("/subscribe", {"address": "a@b.cd", "layers": "servng"}, 400),
    ],
)
def test_odd_requests_get_an_answer_that_fits(site, path, body, status):
    assert site.ask("POST", path, body)[0].status == status
    assert site.letters == []


def test_what_is_written_into_a_link_is_escaped_and_pages_load_nothing(site):
    reply, text = site.ask("GET", "/confirm?token=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script" not in text
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert reply.headers["X-Frame-Options"] == "DENY"
    assert "Python" not in (reply.headers["Server"] or "")


def test_the_feed_is_made_once_in_a_while(site, store, monkeypatch):
    from orrery.evidence.digest import subscription_handler as desks

    made = []
    compose = desks.compose
    monkeypatch.setattr(desks, "compose", lambda *args, **more: made.append(1) or compose(*args, **more))
    answers = {site.ask("GET", "/feed.atom?layers=moe,serving")[1] for _ in range(3)}
    site.ask("GET", "/feed.atom?layers=serving, moe,moe".replace(" ", "%20"))
    assert (len(answers), len(made)) == (1, 1)
    assert site.ask("GET", "/feed.atom?layers=servin")[0].status == 400


def test_an_address_gets_few_letters_whoever_asks(store, sender):
    letters = []
    desk = SubscriptionHandler(store.path, sender, letters.append)
    query_terms = [desk.post("/subscribe", {}, {"address": "Ann@example.org"}, f"10.0.0.{i}").status for i in range(7)]
    assert query_terms == [202] * 5 + [429] * 2
    assert len(letters) == 5


def test_behind_a_proxy_clients_are_told_apart(site):
    def ask(client, address):
        headers = {**FORM, "X-Forwarded-For": f"6.6.6.6, {client}"}
        return site.ask("POST", "/subscribe", {"address": address}, headers)[0].status

    assert [ask("1.2.3.4", f"a{i}@example.org") for i in range(6)] == [202] * 5 + [429]
    assert ask("1.2.3.5", "b@example.org") == 202


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"HEAD / HTTP/1.1\r\n\r\n", b"200"),
        (b"PUT / HTTP/1.1\r\n\r\n", b"405"),
        (b"OPTIONS * HTTP/1.1\r\n\r\n", b"405"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"431"),
        (b"POST /confirm HTTP/1.1\r\nContent-Length: " + b"0" * 5000 + b"\r\n\r\n", b"413"),
        (b"POST /confirm HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"413"),
        (b"GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\nGET /feed.atom HTTP/1.1\r\n\r\n", b"200"),
    ],
)
def test_requests_at_the_edge_of_http_get_one_safe_answer(site, request_, status):
    with socket.create_connection(("127.0.0.1", site.server.server_port), timeout=5) as raw:
        raw.sendall(request_)
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 " + status)
    assert b"X-Frame-Options: DENY" in head
    assert answer.count(b"HTTP/1.0") == 1
    assert (body == b"") == request_.startswith(b"HEAD")


def test_the_feed_is_served(site):
    reply, text = site.ask("GET", "/feed.atom")
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("application/atom+xml")
    assert 'href="https://papers.example.org/feed.atom"' in text


def test_a_mail_server_that_is_away_is_said(store, sender):
    def away(letter):
        raise ScenarioError("smtp: away.")

    page = SubscriptionHandler(store.path, sender, away).post(
        "/subscribe", {}, {"address": "ann@example.org"}, "1.2.3.4"
    )
    assert page.status == 503


def test_a_client_that_dawdles_is_cut_off_and_others_are_served(store, sender, monkeypatch):
    monkeypatch.setattr(servers, "PATIENCE_S", 0.3)
    site = Site(store, sender)
    try:
        with socket.create_connection(("127.0.0.1", site.server.server_port), timeout=5) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
            assert site.ask("GET", "/")[0].status == 200
            assert slow.recv(10) == b""
    finally:
        site.close()

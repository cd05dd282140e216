"""Asking politely: pace, patience, limits and what changed, against a server in this process."""

import gzip
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from orrery.evidence.feed import extra
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.http import MAX_REDIRECTS, TRIES, Reader
from orrery.evidence.feed.pace import RateLimiter

OK = (200, {"ETag": '"one"', "Last-Modified": "Sat, 21 Nov 2026 00:00:00 GMT"}, b"words")


@pytest.fixture
def reader(fake_time):
    return Reader(pace=RateLimiter(interval_s=3.0, clock=fake_time.clock), clock=fake_time.clock, most_bytes=10_000)


def test_requests_are_as_far_apart_as_the_source_asks(server, reader, fake_time):
    server.tell("/a", OK)
    for _ in range(3):
        reader.get(f"{server.url}/a")
        fake_time.now += 1.0
    assert fake_time.waits == [2.0, 2.0]
    fake_time.now += 60.0
    reader.get(f"{server.url}/a")
    assert fake_time.waits == [2.0, 2.0], "no wait for who comes late"


def test_it_says_who_asks_and_what_it_has(server, reader):
    server.tell("/a", OK)
    first = reader.get(f"{server.url}/a")
    assert (first.body, first.etag, first.is_unchanged) == (b"words", '"one"', False)
    again = reader.get(f"{server.url}/a", first.etag, first.last_modified)
    assert (again.body, again.is_unchanged) == (b"", True)
    (_, plain), (_, conditional) = server.inputs
    assert plain["User-Agent"].startswith("orrery/")
    assert "If-None-Match" not in plain
    assert (conditional["If-None-Match"], conditional["If-Modified-Since"]) == (first.etag, first.last_modified)


def test_busy_servers_are_asked_again_when_they_say_or_ever_later(server, reader, fake_time):
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    server.tell("/a", (429, {"Retry-After": "7"}, b""), (503, {}, b""), (503, {"Retry-After": soon}, b""), OK)
    assert reader.get(f"{server.url}/a").body == b"words"
    requested, backed_off, dated = [w for w in fake_time.waits if w > 3.0]
    assert (requested, backed_off) == (7.0, 8.0)
    assert 45.0 < dated <= 50.0


def test_patience_has_an_end(server, reader):
    server.tell("/a", (503, {}, b""))
    with pytest.raises(FeedError, match=r"answers 503; tried 4 times"):
        reader.get(f"{server.url}/a")
    assert len(server.inputs) == TRIES
    server.tell("/b", (429, {"Retry-After": "86400"}, b""))
    with pytest.raises(FeedError, match="come back in 86400 s"):
        reader.get(f"{server.url}/b")
    assert len(server.inputs) == TRIES + 1, "who asks for a day is not asked again"
    server.tell("/c", (404, {}, b""))
    with pytest.raises(FeedError, match="answers 404"):
        reader.get(f"{server.url}/c")
    assert len(server.inputs) == TRIES + 2, "what is not there will not be there in a second"


def test_a_body_that_breaks_off_is_asked_for_again(server, reader):
    server.tell("/a", (200, {"Content-Length": "500", "Cut": "5"}, b"words and more"), OK)
    assert reader.get(f"{server.url}/a").body == b"words"
    assert len(server.inputs) == 2


def test_a_server_that_hangs_up_or_is_silent(server, reader):
    def hang_up(handler):
        handler.close_connection = True
        handler.connection.close()
        raise ConnectionError

    server.tell("/a", hang_up, OK)
    assert reader.get(f"{server.url}/a").body == b"words"
    reader.silence_s = 0.03

    server.tell("/b", lambda handler: (time.sleep(0.1), OK)[1])
    with pytest.raises(FeedError, match=r"no answer within 0.03 s; tried 4 times"):
        reader.get(f"{server.url}/b")


def test_no_more_is_read_than_the_limit_however_it_is_packed(server, reader):
    server.tell("/large", (200, {}, b"x" * 20_000))
    server.tell("/bomb", (200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 5_000_000)))
    for path in ("/large", "/bomb"):
        with pytest.raises(FeedError, match=r"more than 0\.01 MB"):
            reader.get(server.url + path)


def test_redirects_are_followed_a_few_times_and_only_in_the_web(server, reader):
    server.tell("/a", (302, {"Location": "/b"}, b""))
    server.tell("/b", OK)
    assert reader.get(f"{server.url}/a").body == b"words"
    server.tell("/loop", (301, {"Location": "/loop"}, b""))
    with pytest.raises(FeedError, match=f"more than {MAX_REDIRECTS} times"):
        reader.get(f"{server.url}/loop")
    for target in ("file:///etc/passwd", "ftp://x/y", "javascript:alert(1)"):
        server.tell("/out", (302, {"Location": target}, b""))
        with pytest.raises(FeedError, match=r"is no (web )?address"):
            reader.get(f"{server.url}/out")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "not a url", "http://", "gopher://x", "http://[::1"])
def test_only_web_addresses_are_asked(reader, url):
    with pytest.raises(FeedError, match="no web address"):
        reader.get(url)


def test_a_missing_package_is_named_with_what_to_install(reader, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(extra, "import_module", missing)
    with pytest.raises(FeedError, match=r"need httpx; install it: pip install 'orrery-ai\[papers\]'"):
        reader.get("https://example.org/")


def test_a_server_that_dawdles_is_left_alone(server, reader):
    reader.most_s = 0.2

    def trickle(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"x")
            time.sleep(0.01)

    server.tell("/a", trickle)
    with pytest.raises(FeedError, match=r"not complete after 0.2 s"):
        reader.get(f"{server.url}/a")
    assert len(server.inputs) == 1


def test_packings_within_packings_are_refused(server, reader):
    server.tell("/a", (200, {"Content-Encoding": "gzip, gzip"}, gzip.compress(gzip.compress(b"x"))))
    with pytest.raises(FeedError, match="content encoding gzip, gzip was not requested"):
        reader.get(f"{server.url}/a")
    server.tell("/b", (200, {"Content-Encoding": "gzip"}, gzip.compress(b"words")))
    assert reader.get(f"{server.url}/b").body == b"words"
    server.tell("/c", (200, {"Content-Encoding": "gzip"}, gzip.compress(b"words" * 99)[:-12]))
    with pytest.raises(FeedError, match="the answer broke off"):
        reader.get(f"{server.url}/c")


def test_headers_that_mean_nothing_are_passed_over(server, reader, fake_time):
    server.tell("/a", (503, {"Retry-After": "\u00b2"}, b""), (200, {"ETag": '"\u00e9"'}, b"words"))
    document = reader.get(f"{server.url}/a")
    assert (document.etag, fake_time.waits[:1]) == ("", [4.0])
    for target in ("http://[", f"http://{'a' * 70}.example/"):
        server.tell("/b", (302, {"Location": target}, b""))
        with pytest.raises(FeedError, match=r"is no (web )?address"):
            reader.get(f"{server.url}/b")


def test_a_proxy_that_cannot_be_used_is_named(reader, monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "ftp://nowhere")
    with pytest.raises(FeedError, match="proxy that the environment names"):
        reader.get("http://example.invalid/")

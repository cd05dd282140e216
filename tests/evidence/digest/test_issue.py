"""Issues: what a reader wants and nothing else, why, and as text, page and feed."""

from datetime import date, timedelta
from xml.etree import ElementTree as Xml

import pytest

from orrery.evidence.digest.feeds import ATOM
from orrery.evidence.digest.issue import compose, period
from orrery.evidence.digest.render import as_atom, as_html, as_text
from orrery.evidence.digest.subscription import SubscriptionFilter
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.understanding.claim_effect import ClaimEffect
from orrery.evidence.understanding.meaning import Deployment
from orrery.scenario.schema import read_scenario

from .conftest import TODAY, entry


def ids(issue):
    return {item.trend.entry.id for item in issue.items}


def test_with_nothing_chosen_everything_of_the_period_is_in_it(store):
    save_entries(store, [entry("2610.00009", "An old one", "Of long ago.", days_ago=40)], TODAY - timedelta(days=39))
    issue = compose(store, TODAY, SubscriptionFilter(frequency="week"))
    assert ids(issue) == {"2611.00001", "2611.00002", "2611.00003"}
    assert (issue.since, issue.until) == (date(2026, 11, 14), TODAY)
    assert issue.title == "AI compute: 3 papers, 14 November to 20 November 2026"
    assert ids(compose(store, TODAY + timedelta(days=20), SubscriptionFilter(frequency="month"))) >= ids(issue)


def test_a_saved_search_needs_all_its_words_and_says_so(store):
    issue = compose(store, TODAY, SubscriptionFilter(searches=("NVMe cache", "speculative decoding")))
    assert ids(issue) == {"2611.00001"}
    assert issue.items[0].because == ("has all words of 'NVMe cache'",)


def test_a_layer_brings_its_papers_with_the_confidence(store):
    issue = compose(store, TODAY, SubscriptionFilter(layers=("training",)))
    assert ids(issue) == {"2611.00002"}
    assert issue.items[0].because[0].startswith("layer training (")


def test_what_was_sent_before_is_left_out_and_the_rest_is_counted(store):
    issue = compose(store, TODAY, SubscriptionFilter(), without={"2611.00001"}, most=1)
    assert "2611.00001" not in ids(issue)
    assert (len(issue.items), issue.num_more) == (1, 1)


def test_periods():
    assert [period(f, date(2027, 1, 1)) for f in ("day", "week", "month")] == ["2027-01-01", "2026-W53", "2027-01"]


def test_text_says_why_and_where(store):
    text = as_text(compose(store, TODAY, SubscriptionFilter(searches=("NVMe cache",))))
    assert "1. Paging the key-value cache of LLM serving to drives" in text
    assert "https://arxiv.org/abs/2611.00001" in text
    assert "because: has all words of 'NVMe cache'" in text
    assert "claims: " in text
    assert max(map(len, text.splitlines())) <= 80
    assert "Nothing new" in as_text(compose(store, TODAY, SubscriptionFilter(searches=("zebra",))))


def test_the_page_escapes_what_others_wrote_and_loads_nothing(store):
    page = as_html(
        compose(store, TODAY, SubscriptionFilter()), {"Unsubscribe": "https://x.example/unsubscribe?token=a"}
    )
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "src=" not in page
    assert 'href="https://x.example/unsubscribe?token=a"' in page


def test_links_lead_to_the_web_only(store):
    save_entries(store, [entry("2611.00004", "Odd", "Links.")], TODAY)
    store.execute("update entries set url = 'javascript:alert(1)' where id = '2611.00004'")
    issue = compose(store, TODAY, SubscriptionFilter())
    assert "javascript:" not in as_html(issue)
    assert 'href="javascript' not in as_atom(issue)


def test_the_feed_is_well_formed_and_complete(store):
    feed = Xml.fromstring(as_atom(compose(store, TODAY, SubscriptionFilter()), "https://x.example/feed.atom"))
    entries = feed.findall(f"{{{ATOM}}}entry")
    assert feed.findtext(f"{{{ATOM}}}id") == "https://x.example/feed.atom"
    assert len(entries) == 3
    for one in entries:
        assert one.findtext(f"{{{ATOM}}}id").startswith("https://arxiv.org/abs/")
        assert one.findtext(f"{{{ATOM}}}updated") == "2026-11-19T00:00:00Z"
    titles = {one.findtext(f"{{{ATOM}}}title") for one in entries}
    assert "<script>alert(1)</script> & other titles" in titles


@pytest.mark.slow
def test_a_deployment_says_what_a_technique_would_change(store):
    scenario = read_scenario(
        {
            "model": "llama-3.1-8b",
            "device": "h100-sxm",
            "input_tokens": 512,
            "output_tokens": 128,
            "concurrency": 8,
        }
    )
    issue = compose(store, TODAY, SubscriptionFilter(), deployment=Deployment(scenario))
    meanings = [meaning for item in issue.items for meaning in item.meanings]
    assert meanings
    assert all(m.because for m in meanings)
    assert "for you: " in as_text(issue)


class Asked:
    """A deployment whose answers are known: the cache's paper is computed, others are not."""

    def meanings(self, understood):
        return ()

    def claim_effects(self, understood):
        if any(c.metric.startswith("time_to_first_token") for c in understood.claims):
            one = ClaimEffect(
                technique="kv-offload", metric="ttft_s", before=0.3, after=0.25, because="it is on (simulated)."
            )
            return (one,) * len(understood.claims)
        return tuple(ClaimEffect(because="No command takes it.") for _ in understood.claims)


def test_each_claim_stands_beside_what_it_would_be_here(store):
    issue = compose(store, TODAY, SubscriptionFilter(), deployment=Asked())
    text, page = " ".join(as_text(issue).split()), as_html(issue)
    computed = "2.1 against vLLM; your deployment: 1.20x in TTFT with kv-offload; because it is on (simulated)."
    assert computed in text
    assert computed in page
    assert "for you: not computed: No command takes it." in text
    assert "your deployment" not in as_text(compose(store, TODAY, SubscriptionFilter()))

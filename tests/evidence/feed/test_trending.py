"""What comes first, and why; and what it would mean in a deployment."""

from datetime import date, timedelta

import pytest

from orrery.evidence.feed.entry import Classification, Entry, NumericClaim
from orrery.evidence.feed.marks import follow, mark
from orrery.evidence.feed.saved_entries import save_entries
from orrery.evidence.feed.store import Store
from orrery.evidence.understanding.meaning import PAPER_ALONE, Deployment
from orrery.evidence.understanding.trending import trending
from orrery.scenario.schema import read_scenario

TODAY = date(2026, 11, 22)
SERVING = "Requests of language models are served with continuous batching: prefill, decode, goodput, latency."
NUMERICS = "Weights are quantized to four bits, INT4 and FP4, with scales of blocks; post-training quantization error."


def paper(number, title, abstract, days_ago=0, **more):
    day = TODAY - timedelta(days=days_ago)
    return Entry(id=f"2611.{number:05d}", title=title, abstract=abstract, source="test", published=day, **more)


@pytest.fixture
def store(tmp_path):
    papers = [
        paper(1, "Serving old", SERVING, 6),
        paper(2, "Serving new", SERVING, 0),
        paper(3, "Quantized weights", NUMERICS, 3),
        paper(4, "Quantized blocks", NUMERICS, 3, num_votes=40, num_comments=5),
        paper(5, "Ancient", SERVING, 400),
    ]
    with Store(tmp_path / "library.sqlite") as store:
        save_entries(store, papers[:4], TODAY)
        save_entries(store, papers[4:], TODAY - timedelta(days=300))
        yield store


def parts(trend):
    return {part.name: part.value for part in trend.parts}


def test_the_latest_come_first_and_every_part_is_said(store):
    found = trending(store, TODAY)
    assert [t.entry.title for t in found] == ["Quantized blocks", "Serving new", "Quantized weights", "Serving old"]
    blocks, new = found[:2]
    assert parts(new) == {"recency": 1.0, "velocity": 0.0, "interest": 0.0}
    assert [p.because for p in new.parts] == ["published today", "its votes are not counted", "you follow nothing yet"]
    assert parts(blocks)["recency"] == pytest.approx(2 ** (-3 / 3.5))
    assert parts(blocks)["velocity"] == pytest.approx(15 / 20), "45 votes and comments in 3 days"
    assert blocks.score == pytest.approx(sum(parts(blocks).values()))


def test_votes_between_two_counts_make_the_velocity(store):
    more = paper(4, "Quantized blocks", NUMERICS, 3, num_votes=50, num_comments=5)
    save_entries(store, [more], TODAY + timedelta(days=2))
    (blocks,) = [t for t in trending(store, TODAY + timedelta(days=2)) if t.entry.id == "2611.00004"]
    assert parts(blocks)["velocity"] == pytest.approx(5 / 10), "10 more in 2 days"


def test_days_and_layers_narrow_the_list(store):
    early = trending(store, TODAY - timedelta(days=3), "day")
    assert [t.entry.title for t in early] == ["Quantized weights", "Quantized blocks"], "nobody had counted votes yet"
    assert {t.understood.layer for t in trending(store, TODAY, "week", ["numerics"])} == {"numerics"}
    assert trending(store, date(2020, 1, 1)) == []


def test_what_is_followed_and_upvoted_goes_first_and_what_is_read_last(store):
    follow(store, [("layer", "serving")])
    first, *_, last = trending(store, TODAY)
    assert (first.entry.title, last.entry.title) == ("Serving new", "Quantized weights")
    assert parts(first)["interest"] == pytest.approx(1.5 * first.understood.layer_confidence_frac)
    follow(store, [("layer", "serving")], is_on=False)
    mark(store, ["2611.00003"], is_upvoted=True)
    blocks, *_, last = trending(store, TODAY)
    assert blocks.entry.title == "Quantized blocks"
    assert "like 'Quantized weights', which you upvoted: " in blocks.parts[2].because
    assert parts(last)["interest"] == 0.0, "another subject"
    mark(store, ["2611.00004"], is_read=True)
    assert trending(store, TODAY)[-1].entry.title == "Quantized blocks"
    follow(store, [("words", "goodput of requests"), ("technique", "none")])
    (new,) = [t for t in trending(store, TODAY) if t.entry.title == "Serving new"]
    assert "goodput" in new.parts[2].because


def test_a_paper_with_a_file_is_known(store):
    same = Entry(id="2401.09670", title="DistServe", abstract=SERVING, source="test", published=TODAY)
    save_entries(store, [same], TODAY)
    known = {t.entry.id: t.library_key for t in trending(store, TODAY)}
    assert (known["2401.09670"], known["2611.00001"]) == ("distserve", "")


@pytest.fixture(scope="module")
def deployment():
    return Deployment(
        read_scenario(
            {
                "model": "llama-3.1-8b",
                "device": "h100-sxm",
                "weights": "bf16",
                "input_tokens": 1024,
                "output_tokens": 64,
                "concurrency": 16,
                "num_requests": 40,
            }
        )
    )


def describe(deployment, *names, claims=()):
    return deployment.meanings(Classification(techniques=tuple((name, 0.6) for name in names), claims=claims))


def test_a_format_is_computed_with_and_without(deployment):
    (fp8,) = describe(deployment, "fp8-weights")
    assert (fp8.metric, fp8.confidence_frac) == ("output_tokens_per_s", 0.6)
    assert fp8.ratio == pytest.approx(fp8.after / fp8.before)
    assert 1.2 < fp8.ratio < 2.0, "half the bytes of a step that reads weights"
    assert fp8.because == "weights = fp8: switched on (simulated)."


def test_the_metric_is_what_the_paper_speaks_of(deployment):
    claim = NumericClaim(
        metric="time_to_first_token_reduction",
        low=0.3,
        high=0.3,
        unit="frac",
        reading="value",
        text="",
        confidence_frac=0.9,
    )
    layered, chunked = describe(deployment, "layered-prefill", "chunked-prefill", claims=(claim,))
    assert layered.metric == chunked.metric == "ttft_s"
    assert 0.01 < layered.after < 2.0
    assert layered.because == "policy = layered-prefill: switched on (simulated)."
    assert "the default has it on already" in chunked.because
    assert chunked.before != chunked.after


def test_separate_replicas_take_no_more_devices_than_joint_ones(deployment):
    (split,) = describe(deployment, "disaggregated")
    assert split.because == "prefill_replicas = 1, replicas = 1: switched on; both on as many devices (simulated)."
    assert 0.5 < split.ratio < 2.0


def test_what_cannot_be_tried_has_no_number_and_says_why(deployment):
    found = describe(deployment, "gptq", "speculative-decoding", "zero-bubble-h1", "prefix-aware")
    assert [(m.before, m.after, m.ratio) for m in found[:3]] == [(None, None, None)] * 3
    assert [m.because for m in found[:3]] == [
        "gptq changes no deployment; it is tried by `orrery quantize FILE --formats FORMAT --recipes gptq`.",
        "it needs --acceptance or --acceptance-by-position; write yours.",
        "the deployment serves, and this is a technique of training.",
    ]
    assert found[3].ratio == 1.0
    assert found[3].because == "no effect on this deployment: replicas is 1: there is nothing to choose between."


def test_a_mechanism_that_is_no_technique_says_so_and_names_no_other(deployment):
    (found,) = describe(deployment, "join-shortest-queue")
    assert (found.ratio, found.because) == (None, PAPER_ALONE)


def test_a_static_batch_and_a_technique_that_is_on_already():
    batch = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "batch": 8}
    (policy,) = describe(Deployment(read_scenario(batch)), "layered-prefill")
    assert "static batch shows nothing" in policy.because
    (fp8,) = describe(Deployment(read_scenario({**batch, "weights": "fp8"})), "fp8-weights")
    assert "is on already" in fp8.because
    assert fp8.ratio > 1.1


def test_training_is_asked_about_training():
    job = {
        "model": "llama-3.1-8b",
        "device": "h100-sxm",
        "devices": 16,
        "tp": 2,
        "pp": 2,
        "seq_len": 4096,
        "global_batch": 128,
        "micro_batch": 1,
        "precision": "bf16",
    }
    fp8, serving = describe(Deployment(read_scenario(job)), "fp8-training", "layered-prefill")
    assert (fp8.metric, fp8.ratio < 1.0) == ("step_time_s", True)
    assert serving.because == "the deployment trains, and this is a technique of serving."


def test_a_deployment_that_does_not_fit_is_said_to_be_one():
    small = {"model": "llama-3.1-70b", "device": "h100-sxm", "input_tokens": 512, "output_tokens": 64, "batch": 1}
    (fp8,) = describe(Deployment(read_scenario({**small, "weights": "bf16"})), "fp8-kv-cache")
    assert fp8.ratio is None
    assert fp8.because.startswith("the deployment does not fit its devices with or without it: ")

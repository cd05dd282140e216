"""A cache and attention on the host, through every door: the bound, its run, the curve, and where the gain goes."""

import json
from math import isclose

import pytest
from battery import over
from hypothesis import given, settings
from hypothesis import strategies as st

import orrery
from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.scenario import simulate as steps
from orrery.scenario.ask import InfeasibleAnswer

BASE = {
    "model": "mixtral-8x7b",
    "device": "a40",
    "weights": "bf16",
    "input_tokens": 77,
    "output_tokens": 32,
    "max_model_len": 450,
    "expert_offload": "host-attention",
    "host_kv_bytes": 70e9,
    "host_memory_bytes_per_s": 204.8e9,
}
DRAWN = BASE | {"input_tokens_std": 60, "lengths": "lognormal"}


def printed(capsys, *words):
    assert run([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_two_layers_must_lie_on_the_device():
    """141 G weights of 16 bits in 56 layers: two of them take 10 GB, and the rest waits on the host."""
    big = BASE | {"model": "mixtral-8x22b", "batch": 8}
    lacking = orrery.estimate(**big | {"device": "rtx-2080"}).infeasible
    assert lacking.need == pytest.approx(2 * 141e9 * 2 / 56, rel=0.01)
    assert lacking.have == pytest.approx(8.59e9, rel=0.02)
    assert not isinstance(orrery.estimate(**big | {"device": "gtx-1080-ti"}), InfeasibleAnswer)


def test_a_pass_by_hand():
    """Mixtral's 46.7 G weights in 16 bits over a link of 32 GB/s at 0.82; 128 KiB a cached token at 0.76 of memory."""
    x = orrery.estimate(**BASE, batch=1000).work
    assert x.weights_s == pytest.approx(46.7e9 * 2 / (31.5e9 * 0.82), rel=0.02)
    assert x.cache_tokens == 70e9 / 131072
    assert x.attention_s_per_tokens == pytest.approx(131072 / (204.8e9 * 0.76))


def test_padding_is_said():
    alike, drawn = (orrery.estimate(**each, batch=2000) for each in (BASE, DRAWN))
    said = next(note for note in alike.notes if note.startswith("padding"))
    assert "every prompt has 77 tokens" in said
    said = next(note for note in drawn.notes if note.startswith("padding"))
    assert f"go to {drawn.longest_tokens}, " in said
    assert drawn.gain > alike.gain


def test_bound_and_run_agree_within_six_percent_and_say_so(capsys, tmp_path):
    words = [w for k, v in BASE.items() for w in (f"--{k.replace('_', '-')}", f"{v}")]
    typed = printed(capsys, "simulate", *words, "--num-requests", "5000")
    file = tmp_path / "mine.toml"
    file.write_text("".join(f"{k} = {v!r}\n" for k, v in BASE.items()) + "num_requests = 5000\n")
    assert typed == printed(capsys, "simulate", "--scenario", str(file))
    answer = orrery.simulate(**BASE, num_requests=5000)
    assert typed == json.loads(json.dumps(answer.to_json()))
    assert answer.closed_ratio == pytest.approx(1.0, rel=0.06)
    bound = printed(capsys, "estimate", *words, "--batch", "5000")
    assert bound["duration_s"] == pytest.approx(answer.closed_s)
    assert bound["limit_tokens_per_s"] >= 0.98 * answer.output_tokens_per_s
    assert run(["simulate", *words, "--num-requests", "5000"]) == 0
    shown = capsys.readouterr().out
    for said in ("times the passes' seconds", "endless run (bound)", "in phases, padded", "gain"):
        assert said in shown


def test_the_gain_grows_with_requests_and_falls_with_slow_host_memory():
    gains = [point.gain for point in orrery.estimate(**BASE, batch=5000).curve]
    assert gains == sorted(gains)
    slow, even = (
        orrery.simulate(**BASE | {"host_memory_bytes_per_s": rate}, num_requests=10000) for rate in (1e8, 1e10)
    )
    assert slow.bound_by == even.bound_by == "host memory"
    assert even.gain > 1.3
    assert slow.gain == pytest.approx(1.0, abs=0.05)  # every cached token is read once a pass in both


def test_padding_is_what_phases_read_in_vain():
    """Prompts of many lengths in phases are padded to the longest, which host memory reads too."""
    slow = BASE | {"host_memory_bytes_per_s": 1e8}
    drawn = orrery.simulate(**DRAWN | {"host_memory_bytes_per_s": 1e8}, num_requests=10000)
    assert drawn.longest_tokens > 300
    assert drawn.phased_s > 3 * orrery.simulate(**slow, num_requests=10000).phased_s


@given(
    st.sampled_from(["mixtral-8x7b", "qwen3-30b-a3b", "dbrx-instruct"]),
    st.sampled_from(["a40", "h100-sxm", "l40s"]),
    st.integers(16, 600),
    st.integers(2, 200),
    st.floats(3e9, 3e11),
    st.integers(1, 1500),
)
@settings(max_examples=25, deadline=None)
def test_nothing_beats_the_link_the_device_or_the_memory(model, device, prompt, answer, room, count):
    drawn = BASE | {"model": model, "device": device, "input_tokens": prompt, "output_tokens": answer}
    drawn |= {"host_kv_bytes": room, "max_model_len": None}
    found = orrery.simulate(**{k: v for k, v in drawn.items() if v is not None}, num_requests=count)
    assert not isinstance(found, InfeasibleAnswer)
    assert found.duration_s >= answer * found.work.weights_s * 0.999
    assert found.output_tokens_per_s <= 1.02 * found.limit_tokens_per_s
    read_s = count * answer * prompt * found.work.attention_s_per_tokens
    assert found.duration_s >= read_s * (answer - 1) / answer * 0.999


WRONG = [
    ({"batch": None}, "batch: is missing"),
    ({"host_kv_bytes": None}, "host_kv_bytes: is missing"),
    ({"host_memory_bytes_per_s": None}, "host_memory_bytes_per_s: is missing"),
    ({"host_kv_bytes": 1e6}, "give the host more memory"),
    ({"host_kv_bytes": 2e7, "input_tokens_std": 100}, "do not hold the longest request"),
    ({"model": "llama-3.1-8b"}, "has no experts"),
    ({"tp": 2}, "tp: not of a run"),
    ({"replicas": 4, "swap": "plain-copy"}, "not of a run"),
    ({"expert_cached": 0.5}, "expert_cached: not of a run"),
    ({"max_model_len": 100}, "max_model_len"),
    ({"expert_offload": "host"}, "the device keeps the cache"),
    ({"expert_offload": None}, "experts lie on the devices"),
]


@over(WRONG, named=lambda changes, words: words)
def test_what_cannot_be_is_refused_in_words(changes, words):
    inputs = BASE | {"batch": 100} | changes
    with pytest.raises(OrreryError, match=words):
        orrery.estimate(**{k: v for k, v in inputs.items() if v is not None})


def test_other_questions_are_refused_in_words(capsys, tmp_path):
    with pytest.raises(OrreryError, match="num_requests: is missing"):
        orrery.simulate(**BASE)
    with pytest.raises(OrreryError, match="host-attention is a run"):
        steps.simulate(**BASE, num_requests=8)
    words = [w for k, v in BASE.items() for w in (f"--{k.replace('_', '-')}", f"{v}")]
    assert run(["simulate", *words, "--num-requests", "9", "--out", str(tmp_path / "x.csv")]) != 0
    assert "has one row" in capsys.readouterr().err


def test_money_is_the_devices():
    answer = orrery.simulate(**BASE, num_requests=1000, usd_per_hour=3.6)
    assert isclose(answer.usd_per_million_tokens, 0.001 / answer.output_tokens_per_s * 1e6)

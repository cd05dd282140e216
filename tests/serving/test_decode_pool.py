"""One pool alone: a step and its sequences by hand, the two pools against both together, and what is refused."""

import json

import numpy as np
import pytest

import orrery
from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.execution.memory import Infeasible
from orrery.scenario.ask import InfeasibleAnswer
from orrery.serving.clock import steps_of, tick

SERVED = {"model": "llama-3.1-8b", "device": "h100-sxm", "input_tokens": 2048, "output_tokens": 257}
DECODE, PREFILL = {"disaggregation_mode": "decode"}, {"disaggregation_mode": "prefill"}


def asked(**settings):
    return orrery.estimate(**SERVED | {"concurrency": 64} | settings).estimate


def test_a_closed_loop_by_hand():
    """64 sequences of 2048 + 128.5 tokens: one step a token, 256 tokens each."""
    found = asked(**DECODE)
    ticks = tick(found.deployment, steps_of(0.0, 0.0, 0.0, np.array([64.0]), 2048 + 257 / 2))
    step_s = float(ticks.time_s[0])
    assert found.tpot_s == found.ttft_s == found.decode_step_s == pytest.approx(step_s)
    assert found.latency_s == pytest.approx(256 * step_s)
    assert found.requests_per_s == pytest.approx(64 / (256 * step_s))
    assert found.output_tokens_per_s == found.total_tokens_per_s == pytest.approx(64 / step_s)


def test_more_than_fit_wait_for_a_slot():
    held, more = asked(**DECODE, max_num_seqs=32, concurrency=32), asked(**DECODE, max_num_seqs=32, concurrency=96)
    assert more.tpot_s == held.tpot_s
    assert more.requests_per_s == held.requests_per_s
    assert more.ttft_s == pytest.approx(held.ttft_s + 2 * 256 * held.tpot_s)


def test_a_batch_goes_in_turns():
    batch = {"concurrency": None, "max_num_seqs": 40}
    one, two = (asked(**DECODE, **batch, batch=n) for n in (40, 80))
    assert two.tpot_s == one.tpot_s
    assert two.latency_s == pytest.approx(2 * one.latency_s)
    assert one.latency_s == pytest.approx(256 * one.tpot_s)


def test_arrivals_fill_as_many_sequences_as_are_alive():
    rate = {"concurrency": None, "rate": 10.0}
    found = asked(**DECODE, **rate)
    alive = 10.0 * 256 * found.tpot_s
    step_s = tick(found.deployment, steps_of(0.0, 0.0, 0.0, np.array([alive]), 2048 + 257 / 2)).time_s[0]
    assert found.tpot_s == pytest.approx(step_s, rel=0.01)
    assert found.ttft_s == pytest.approx(1.5 * found.tpot_s)
    assert found.output_tokens_per_s == pytest.approx(10 * 256)
    beyond = orrery.estimate(**SERVED | DECODE, rate=1000.0)
    assert isinstance(beyond, InfeasibleAnswer)
    assert isinstance(beyond.infeasible, Infeasible)


def test_prompts_make_the_joint_pool_slower_and_few_prompts_do_not():
    assert asked(**DECODE).tpot_s < 0.8 * asked().tpot_s
    short = {"input_tokens": 1, "output_tokens": 4096}
    assert asked(**DECODE, **short).tpot_s == pytest.approx(asked(**short).tpot_s, rel=0.02)


def test_a_prefill_pool_ends_with_the_first_token():
    alone, one = asked(**PREFILL), asked(output_tokens=1)
    assert (alone.ttft_s, alone.requests_per_s) == (one.ttft_s, one.requests_per_s)
    assert alone.output_tokens_per_s == alone.requests_per_s


def test_drafts_and_data_parallel_ranks_raise_the_rate():
    plain, ranks = asked(**DECODE), asked(**DECODE, dp=2, concurrency=128)
    assert ranks.tpot_s == plain.tpot_s
    assert ranks.requests_per_s == pytest.approx(2 * plain.requests_per_s)
    drafted = asked(**DECODE, draft="eagle", acceptance=0.7)
    assert drafted.output_tokens_per_s > 1.2 * plain.output_tokens_per_s


def test_the_simulated_decode_pool_takes_as_long_for_a_token():
    found = asked(**DECODE, concurrency=None, rate=20.0)
    service = orrery.simulate(**SERVED, rate=20.0, prefill_replicas=4, num_requests=300, seed=1)
    assert service.summary.tpot.mean_s == pytest.approx(found.tpot_s, rel=0.1)


def test_three_doors_give_one_answer(tmp_path, capsys):
    settings = SERVED | DECODE | {"concurrency": 8}
    file = tmp_path / "mine.toml"
    file.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))
    typed = [w for k, v in settings.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    answers = []
    for words in (typed, ["--scenario", str(file)]):
        assert run(["estimate", *words, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1] == json.loads(json.dumps(orrery.estimate(**settings).to_json()))
    assert any("disaggregation_mode: decode" in note for note in answers[0]["notes"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"disaggregation_mode": "both"}, "write prefill or decode"),
        (DECODE | {"output_tokens": 1}, "write 2 or more"),
        (DECODE | {"concurrency": None, "users": 10}, "users: is answered by both pools"),
        (DECODE | {"reasoning": "best-of-n"}, "reasoning: is answered by both pools"),
    ],
)
def test_what_is_refused(settings, words):
    with pytest.raises(OrreryError, match=words):
        asked(**settings)

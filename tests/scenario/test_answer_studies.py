"""Studies of an answer of many calls, and the ways to spend a budget: by every door, with limits and refusals."""

import json

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.ask import Answer, estimate

BASE = {
    "model": "llama-3.1-8b",
    "device": "h100-sxm",
    "input_tokens": 200,
    "output_tokens": 500,
    "batch": 1,
    "success": 0.3,
}


def estimated(**more) -> Answer:
    found = estimate(**{k: v for k, v in (BASE | more).items() if v is not None})
    assert isinstance(found, Answer)
    return found


def study(name, **more):
    return estimated(**more).to_json()["answer"]["studies"][name]


def best_of(*knobs, **more):
    return {"reasoning": "best-of-n", "samples": "1,16", "reasoning_knob": list(knobs), **more}


def test_equal_difficulty_is_dealt_out_as_to_all():
    found = study("allocation", **best_of("allocate=by-difficulty", verifier_accuracy=0.8))
    assert found["saving_over_same_way_ratio"] == pytest.approx(1.0)
    assert len(found["rows"]) == 1
    spread = study("allocation", **best_of("allocate=by-difficulty", verifier_accuracy=0.8, evenness=1))
    assert spread["saving_over_same_way_ratio"] >= 1.0
    assert len(spread["rows"]) == 5
    assert spread["right_frac"] >= spread["right_same_way_frac"]


def test_no_study_is_as_it_was():
    plain, more = estimated(**best_of()), estimated(**best_of("stop_gain=0.01"))
    first, second = plain.to_json()["answer"], more.to_json()["answer"]
    assert "studies" not in first
    assert {k: v for k, v in second.items() if k != "studies"} == first


def test_the_advice_to_stop_by_hand():
    """Gains of 0.3 x 0.7^n fall under 0.05 from n = 6 on: 0.3 x 0.7^5 = 0.0504, 0.3 x 0.7^6 = 0.0353."""
    found = study("stop", **best_of("stop_gain=0.05"))
    assert found["advised_tries"] == 6
    assert found["coverage_frac"] == pytest.approx(1 - 0.7**6)
    capped = study("stop", **best_of("stop_gain=0.05", "ceiling=0.5"))
    assert capped["coverage_frac"] < 0.5
    assert capped["advised_tries"] < 6


def test_cache_reads_count_and_sparsity_loses_what_it_is_told():
    found = study("equivalent_flops", **best_of("cost=equivalent-flops", "sparse_kept_tokens=64", "sparse_loss=0.1"))
    dense, sparse = ([r for r in found["rows"] if r["attention"] == kind] for kind in ("dense", "sparse"))
    for one, other in zip(dense, sparse, strict=True):
        assert other["total_flops"] < one["total_flops"]
        assert other["coverage_frac"] == pytest.approx(0.9 * one["coverage_frac"])
        assert one["total_flops"] == one["computed_flops"] + one["cache_flops"]
    everything = study("equivalent_flops", **best_of("cost=equivalent-flops", "sparse_kept_tokens=100000"))
    rows = everything["rows"]
    for one, other in zip(rows[:2], rows[2:], strict=True):
        assert other["total_flops"] == pytest.approx(one["total_flops"], rel=1e-9), "all kept is dense, prefix and all"


def sleeping(*knobs):
    return {"reasoning": "sleep-time-compute", "success": None, "reasoning_knob": list(knobs)}


def test_thinking_beforehand_by_hand():
    """Idle tokens at a tenth, a pass of one answer, a fifth of an answer then: (0.1 / 10 + 0.2) / 1."""
    found = study("amortised", **sleeping("idle_price_ratio=0.1", "num_questions=10"))
    assert found["cost_over_plain_ratio"] == pytest.approx(0.21)
    assert found["break_even_questions"] == pytest.approx(0.1 / 0.8)


def test_without_hits_it_costs_more_than_plain():
    found = study("amortised", **sleeping("idle_price_ratio=0.1", "hit_frac=0", "num_questions=4"))
    assert found["cost_over_plain_ratio"] == pytest.approx(1.025)
    assert found["break_even_questions"] is None
    notes = estimated(**sleeping("idle_price_ratio=0.1", "hit_frac=0.8")).notes
    assert [n for n in notes if n.startswith("hit_frac:") and "a share 20 %" in n]
    assert not [n for n in estimated(**sleeping("idle_price_ratio=0.1")).notes if n.startswith("hit_frac:")]


def test_a_verifier_that_never_errs_moves_the_split():
    inputs = {"reasoning": "generative-verification", "evenness": 1, "reasoning_knob": ["budget_tokens=16000"]}
    exact, doubtful = (study("split", **inputs, verifier_accuracy=v) for v in (1.0, 0.7))
    assert exact["right_frac"] > doubtful["right_frac"]
    assert exact["best_solutions"] >= doubtful["best_solutions"]
    assert all(row["tokens"] <= 16000 for row in exact["rows"])


def checked(*knobs):
    asked = ["budget_tokens=64000", *knobs]
    return study("split", reasoning="generative-verification", evenness=1, wrong_answers=20, reasoning_knob=asked)


def test_checks_say_yes_as_often_as_is_stated():
    """Checks that tell nothing apart pick like one try, 0.3; those that never err find what is there."""
    blind, sharp = checked("check_right_frac=0.5", "check_wrong_frac=0.5"), checked("check_wrong_frac=0")
    assert blind["right_frac"] == blind["vote_right_frac"]  # no check is worth its tokens
    assert blind["catch_up_ratio"] is None
    assert sharp["catch_up_ratio"] < 1.0
    assert sharp["right_frac"] > blind["right_frac"]
    few = checked("check_right_frac=0.8", "check_wrong_frac=0.3", "most_checks=2")
    assert max(row["num_checks"] for row in few["rows"]) <= 2
    assert few["solutions_exponent"] > few["checks_exponent"]  # answers alone can grow


def test_operations_of_all_models_are_two_a_parameter_and_token():
    """One answer of 2,000 tokens (or as long as the question's) to a prompt: 2 N (prompt + answer)."""
    found = study("equivalent_flops", **best_of("cost=equivalent-flops", samples=1))
    row = found["rows"][0]
    assert row["linear_flops"] + row["attention_flops"] == row["computed_flops"]
    assert row["parameter_flops"] > row["linear_flops"]  # the prompt, and the verifier's reading


def test_a_tree_is_cut_where_knobs_say():
    def tree(*knobs):
        return estimated(reasoning="tree-search", success=None, samples=16, reasoning_knob=list(knobs)).reasoned.ways[0]

    plain, same = tree(), tree("longest_step_ratio=3", "longest_path_ratio=3", "score_temperature_ratio=0.2")
    assert plain.answer_tokens == same.answer_tokens
    assert tree("longest_path_ratio=0.5").answer_tokens < plain.answer_tokens
    with pytest.raises(ScenarioError, match="longest_step_ratio = 0"):
        tree("longest_step_ratio=0")


def chains(**more):
    knobs = [f"{k}={v}" for k, v in ({"mode": "asynchronous"} | more).items()]
    return study(
        "chains", success=None, reasoning="speculative-chains", draft_model="llama-3.2-1b", reasoning_knob=knobs
    )


def test_one_chain_waits_for_nobody_and_many_gain():
    one, many = chains(num_chains=1), chains(num_chains=16)
    assert one["speedup_ratio"] == pytest.approx(1.0, abs=0.02)
    assert many["speedup_ratio"] > 1.05
    assert many["held_out_rejected_frac"] == pytest.approx(0.4, abs=4 * many["held_out_spread_frac"])


def test_a_budget_ranks_the_ways():
    wide, narrow = (
        estimated(verifier_accuracy=0.9, evenness=1, budget_usd=usd).to_json()["answer"]["budget"]
        for usd in (0.05, 0.006)
    )
    shares = [row["right_frac"] for row in wide["ranked"]]
    assert shares == sorted(shares, reverse=True)
    assert all(row["usd"] <= 0.05 for row in wide["ranked"])
    assert wide["ranked"][0]["right_frac"] >= narrow["ranked"][0]["right_frac"]
    assert estimated(budget_usd=1e-9).to_json()["answer"]["budget"]["ranked"] == []


def test_every_door_gives_the_same_numbers(tmp_path, capsys):
    from orrery.cli.main import run

    inputs = BASE | best_of("stop_gain=0.01") | {"budget_usd": 0.01}
    path = tmp_path / "mine.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in inputs.items()))
    flags = [
        word
        for key, value in inputs.items()
        for one in (value if isinstance(value, list) else [value])
        for word in (f"--{key.replace('_', '-')}", str(one))
    ]
    found = [json.dumps(estimated(**inputs).to_json()["answer"], sort_keys=True)]
    for words in (flags, ["--scenario", str(path)]):
        assert run(["estimate", *words, "--json"]) == 0
        found.append(json.dumps(json.loads(capsys.readouterr().out)["answer"], sort_keys=True))
    assert len(set(found)) == 1
    assert run(["estimate", *flags[: flags.index("--budget-usd")]]) == 0
    assert "adds less than 0.01" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (best_of("num_bins=4"), "read with allocate"),
        (best_of("sparse_loss_frac=0.5"), "has no knob 'sparse_loss_frac'; did you mean 'sparse_loss'"),
        (best_of("qq=3"), "write one of 'num_samples', 'allocate', 'num_bins'"),
        (best_of("allocate=evenly"), "write allocate=by-difficulty"),
        (best_of("idle_price_ratio=0.1"), "is about sleep-time-compute"),
        (best_of("stop_gain=2"), "write 1e-09 to 1"),
        (best_of("stop_gain=0.1", "ceiling=0.2"), "is below success"),
        (best_of("stop_gain=0.1", success=None), "success: is missing"),
        ({"budget_usd": 0.1, "success": None}, "needs the chance"),
    ],
)
def test_what_makes_no_sense_is_refused(more, words):
    with pytest.raises(ScenarioError, match=words):
        estimated(**more)


def test_a_cache_limit_makes_waves_and_none_is_as_it_was():
    inputs = {"reasoning": "majority-vote", "samples": "64"}
    free, wide = estimated(**inputs).reasoned, estimated(**inputs, kv_limit_bytes=1e14).reasoned
    assert free is not None
    assert wide is not None
    assert free.to_json() == wide.to_json()
    tight = estimated(**inputs, kv_limit_bytes=1.1e9).reasoned
    assert tight is not None
    assert tight.ways[0].num_waves > free.ways[0].num_waves == 1
    assert tight.ways[0].time_s > free.ways[0].time_s


def test_a_cache_limit_below_one_sequence_is_infeasible():
    found = estimate(**BASE, reasoning="majority-vote", samples="4", kv_limit_bytes=1e6)
    assert "cache of one sequence" in str(found.infeasible)

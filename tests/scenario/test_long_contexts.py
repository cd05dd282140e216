"""The table of what long contexts cost: every door, numbers by hand, and where length no longer matters."""

import json

import pytest
from battery import over

import orrery
from orrery.base.errors import OrreryError
from orrery.cli.main import run
from orrery.scenario import ask

YI = {
    "model": "yi-34b",
    "device": "a100-sxm-80gb",
    "tp": 2,
    "max_model_len": 50000,
    "context_lengths": "4k,50000",
}


def test_one_table_through_every_door(capsys, tmp_path):
    inputs = YI | {"kv": "bf16,fp8", "kv_kept_tokens": 0.5}
    words = [w for k, v in inputs.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    assert run(["estimate", *words, "--json"]) == 0
    typed = json.loads(capsys.readouterr().out)
    file = tmp_path / "mine.toml"
    file.write_text("".join(f"{k} = {v!r}\n" for k, v in inputs.items()))
    assert run(["estimate", "--scenario", str(file), "--json"]) == 0
    assert typed == json.loads(capsys.readouterr().out)
    assert typed == json.loads(json.dumps(orrery.estimate(**inputs).to_json()))
    rows = [(r["context_tokens"], r["kv"], r["compression"]) for r in typed["contexts"]]
    half = "kv_kept_tokens = 0.5"
    assert rows == [(n, kv, kept) for kv in ("bf16", "fp8") for n in (4000, 50000) for kept in ("all", half)]
    assert run(["estimate", *words]) == 0
    shown = capsys.readouterr().out
    for said in ("change of users", half, "50,000"):
        assert said in shown


def test_bytes_by_hand_and_what_is_kept_of_them():
    """60 layers of 8 key heads of 128, keys and values: 240 KiB a token in 16 bits."""
    rows = orrery.estimate(**YI, kv_kept_bytes=0.25).rows
    whole, quarter = (
        {r.costs.context_tokens: r.costs for r in rows if r.compression == k} for k in ("all", rows[1].compression)
    )
    assert whole[50000].kv_bytes == 50000 * 60 * 2 * 8 * 128 * 2
    assert quarter[50000].kv_bytes == whole[50000].kv_bytes / 4
    assert quarter[50000].concurrency >= 4 * whole[50000].concurrency
    assert quarter[50000].context_switch_s < 0.3 * whole[50000].context_switch_s
    assert whole[50000].prefill_s > 12.5 * whole[4000].prefill_s  # attention grows with the square


def test_a_budget_is_a_way_of_keeping_less():
    rows = orrery.estimate(**YI, kv_selection="snapkv", kv_budget_tokens=1024).rows
    small = [r.costs for r in rows if r.compression != "all"]
    assert [c.kv_bytes for c in small] == [1024 * 60 * 2 * 8 * 128 * 2] * 2


def test_without_a_cache_users_and_changes_do_not_depend_on_length():
    short, long = (r.costs for r in orrery.estimate(**YI | {"model": "mamba-2.8b", "tp": 1}).rows)
    assert (short.concurrency, short.context_switch_s) == (long.concurrency, long.context_switch_s)
    assert short.one_decode_step_s == long.one_decode_step_s
    assert short.prefill_s < long.prefill_s


WRONG = [
    ({"context_lengths": "4k,most"}, "such as 4096,50000"),
    ({"context_lengths": "0"}, "such as 4096,50000"),
    ({"max_model_len": None}, "more than the context of 4,096"),
    ({"batch": 3}, "batch: a table"),
    ({"input_tokens": 3}, "input_tokens: a table"),
    ({"kv_budget_tokens": 512}, "nothing is chosen"),
    ({"kv": "fp17"}, "fp17"),
]


@over(WRONG, named=lambda changes, words: words)
def test_what_cannot_be_is_refused_in_words(changes, words):
    inputs = {k: v for k, v in (YI | changes).items() if v is not None}
    with pytest.raises(OrreryError, match=words):
        orrery.estimate(**inputs)


def test_other_questions_refuse_it_and_weights_must_fit():
    with pytest.raises(OrreryError, match="a table of its own"):
        ask.estimate(**YI, input_tokens=8, output_tokens=8, batch=1)
    lacking = orrery.estimate(**YI | {"tp": 1, "gpu_memory_utilization": 0.5})
    assert lacking.infeasible.need > lacking.infeasible.have

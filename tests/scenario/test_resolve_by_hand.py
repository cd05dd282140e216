"""From settings to a layout, formats and traffic: what is spread, refused and assumed."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Layout
from orrery.scenario import capacity_left, clock, fronts, kept_cache, names, resolve
from orrery.scenario.routing_trace import is_trace, trace_of
from orrery.scenario.schema import read_scenario

LLAMA, QWEN, H100 = get_model("llama-3.1-8b"), get_model("qwen3-30b-a3b"), get_device("h100-sxm")
PARTS = resolve.Parts(model=LLAMA, device=H100, engine=get_engine("vllm"), notes=())


def laid_out(**settings):
    layout, notes = resolve.layout_of(read_scenario(settings), PARTS)
    return (layout.tp, layout.pp, layout.dp), notes


@pytest.mark.parametrize(
    ("settings", "degrees", "says"),
    [
        ({}, (1, 1, 1), ""),
        ({"devices": 1}, (1, 1, 1), ""),
        ({"devices": 8}, (8, 1, 1), "layout: tp = 8 (to use all 8 devices)"),
        ({"devices": 16}, (8, 2, 1), "layout: tp = 8, pp = 2 (to use all 16 devices)"),  # eight in a node
        ({"devices": 16, "dp": 4}, (4, 1, 4), "layout: tp = 4 (to use all 16 devices)"),
        ({"devices": 16, "pp": 4}, (4, 4, 1), "layout: tp = 4, pp = 4 (to use all 16 devices)"),
        ({"devices": 6}, (2, 3, 1), "layout: tp = 2, pp = 3 (to use all 6 devices)"),  # 32 heads are not cut by 6
        ({"devices": 4, "tp": 2, "dp": 2}, (2, 1, 2), ""),
        ({"tp": 2, "pp": 2}, (2, 2, 1), ""),
    ],
)
def test_devices_without_a_layout_are_spread(settings, degrees, says):
    found, notes = laid_out(**settings)
    assert found == degrees
    assert notes == ((says,) if says else ())


def test_devices_that_no_layout_takes():
    with pytest.raises(ScenarioError, match=r"6 cannot be cut into .*write a multiple of 4"):
        laid_out(devices=6, dp=4)
    with pytest.raises(ScenarioError, match="write devices = 4"):
        laid_out(devices=6, tp=2, dp=2)


@pytest.mark.parametrize(
    ("degrees", "model", "redundant", "says"),
    [
        ({"ep": 2, "tp": 2}, LLAMA, 0, "has no experts"),
        ({"ep": 1, "tp": 2}, LLAMA, 0, ""),
        ({"ep": 3, "dp": 3}, QWEN, 0, "does not divide the 128 experts .*num_redundant_experts = 1 "),
        ({"ep": 3, "dp": 3}, QWEN, 1, ""),
        ({"ep": 4, "tp": 2, "dp": 2}, QWEN, 0, ""),
        ({"ep": 8, "tp": 2, "dp": 2}, QWEN, 0, "must divide tp x dp = 4"),
        ({"ep": 4, "dp": 6}, QWEN, 0, "must divide tp x dp = 6"),
        ({"ep": 2, "etp": 2, "tp": 4}, QWEN, 0, ""),
        ({"ep": 2, "etp": 2, "tp": 2, "dp": 2}, QWEN, 0, ""),
        ({"ep": 2, "etp": 2, "tp": 2, "dp": 4}, QWEN, 0, "neither the 2 devices"),
        ({"pp": 32}, LLAMA, 0, ""),
        ({"pp": 33}, LLAMA, 0, "write at most 32"),
        ({"tp": 3}, LLAMA, 0, "does not divide 32 attention heads"),
    ],
)
def test_layouts_that_no_engine_could_run(degrees, model, redundant, says):
    if not says:
        resolve.check_layout(Layout(**degrees), model, redundant)
        return
    with pytest.raises(ScenarioError, match=says):
        resolve.check_layout(Layout(**degrees), model, redundant)


def test_requests_of_a_traffic_that_is_set_up():
    lengths = {"input_tokens": 10, "output_tokens": 5}
    for settings, mode, batch, concurrency in (
        ({"batch": 3}, "static", 3, 0),
        ({"concurrency": 7}, "closed", 0, 7),
        ({"rate": 2}, "open", 0, 0),
    ):
        found, _ = resolve.workload_of(read_scenario(lengths | settings))
        assert (found.mode, found.batch_size, found.concurrency) == (mode, batch, concurrency)
    with pytest.raises(ScenarioError, match="all missing"):
        resolve.workload_of(read_scenario(lengths))
    with pytest.raises(ScenarioError, match="output_tokens: is missing"):
        resolve.workload_of(read_scenario({"input_tokens": 10}))


def test_lists_with_commas():
    assert resolve.words(" a, b,,a ") == ("a", "b")
    with pytest.raises(ScenarioError, match="got 2 devices"):
        resolve.one_device(read_scenario({"device": "h100-sxm,b200"}))
    with pytest.raises(ScenarioError, match="got ','"):
        resolve.device_names(read_scenario({"device": ","}))


def test_copies_of_experts_are_one_a_rank_where_nobody_says():
    redundant = read_scenario({"expert_placement": "redundancy"})
    assert resolve.redundant_experts_of(redundant, QWEN, Layout(ep=4, dp=4)) == 4
    assert resolve.redundant_experts_of(redundant, QWEN, Layout(tp=4)) == 0
    two = read_scenario({"expert_placement": "redundancy", "num_redundant_experts": 8})
    assert resolve.redundant_experts_of(two, QWEN, Layout(ep=4, dp=4)) == 8
    assert resolve.redundant_experts_of(read_scenario({}), QWEN, Layout(ep=4, dp=4)) == 0


# --- clocks


@pytest.mark.parametrize(("text", "found"), [(None, (1.0,)), ("0.8", (0.8,)), ("1,0.5,1", (1.0, 0.5)), ("0.1", (0.1,))])
def test_clocks_as_they_are_written(text, found):
    assert clock.clock_fracs(read_scenario({"clock_frac": text})) == found


@pytest.mark.parametrize("text", ["0.09", "1.01", "0.5,2", "0.05,0.5", "fast", ","])
def test_clocks_that_no_device_has(text):
    with pytest.raises(ScenarioError, match=r"write parts of 0\.1 to 1"):
        clock.clock_fracs(read_scenario({"clock_frac": text}))


def test_a_full_clock_is_not_worth_a_note():
    assert clock.clock_notes(read_scenario({}), H100) == ()
    assert clock.clock_notes(read_scenario({"clock_frac": "1"}), H100) == ()
    assert len(clock.clock_notes(read_scenario({"clock_frac": "0.8"}), H100)) == 1


# --- room


def room(monkeypatch, own=100, max_len=0, holds=80.0, each=4.0, most=4, dp=2, lends=False):
    monkeypatch.setattr(capacity_left, "room_for_kept", lambda *found: (None, 1.0))
    monkeypatch.setattr(capacity_left, "batch_limit", lambda *found: each)
    deployment = SimpleNamespace(
        layout=SimpleNamespace(dp=dp), model=SimpleNamespace(max_context_tokens=own), max_model_tokens=max_len
    )
    memory = SimpleNamespace(kv_capacity_tokens=holds, max_num_seqs=most)
    return capacity_left.room_of(deployment, memory, 10.0, 5.0, lends_cache=lends)


def test_the_longest_context_is_what_model_and_cache_admit(monkeypatch):
    small = room(monkeypatch)
    assert (small.longest_context_tokens, small.longest_context_limit) == (80, "kv cache")
    assert (small.kv_cache_tokens, small.max_sequences, small.max_sequences_limit) == (160, 8, "max_num_seqs")
    assert room(monkeypatch, each=3.0).max_sequences_limit == "kv cache"
    lent = room(monkeypatch, lends=True)
    assert (lent.longest_context_tokens, lent.longest_context_limit) == (100, "model")
    assert room(monkeypatch, holds=100.0).longest_context_limit == "model"
    told = room(monkeypatch, max_len=50)
    assert (told.longest_context_tokens, told.longest_context_limit) == (50, "max_model_len")
    assert room(monkeypatch, own=None).longest_context_tokens == 80
    endless = room(monkeypatch, own=0, holds=float("inf"))
    assert endless.longest_context_tokens == float("inf")


def test_room_in_a_sentence(monkeypatch):
    says = room(monkeypatch, each=2.6).describe(10.0, 5.0)
    assert says == (
        "KV cache: 160 tokens over 2 replicas. Longest context: 80 tokens (kv cache). Most sequences in flight: "
        "5 of 10 + 5 tokens (kv cache)."
    )
    assert " over " not in room(monkeypatch, dp=1).describe(10.0, 5.0)


# --- fronts


def test_points_of_a_front_are_spread_evenly():
    assert fronts._spread(np.array([0.0, 1.0, 2.0])) == [0, 1, 2]
    places = np.array([0.0, 0.1, 0.2, 1.0, 1.9, 3.1, 4.0])  # ends and near to 1, 2 and 3
    assert fronts._spread(places) == [0, 3, 4, 5, 6]
    assert fronts._spread(np.array([0.0, 0.01, 0.02, 0.03, 0.04, 8.0])) == [0, 4, 5]


def point(num_devices, tpot_s, rate):
    figures = SimpleNamespace(num_devices=num_devices, tpot_s=tpot_s, output_tokens_per_s=rate)
    return SimpleNamespace(answer=SimpleNamespace(estimate=figures))


def test_a_point_that_another_of_as_many_devices_reaches_is_left_out():
    """Faster for one user, or more for all; a point of fewer devices takes none away."""
    quick, slow, beaten, single = point(2, 0.01, 5.0), point(2, 0.02, 9.0), point(2, 0.015, 4.0), point(1, 0.05, 1.0)
    assert list(fronts._undominated([slow, beaten, quick, single])) == [single, quick, slow]


# --- names


def test_a_word_that_is_no_setting_has_the_nearest_right_one():
    known = ("rate", "max_devices", "kv", "kv_bytes", "kv_bytes_frac", "input_tokens")
    assert names.hint("gpus", ("devices",)) == "did you mean 'devices'?"
    assert names.hint("raet", known) == "did you mean 'rate'?"
    assert names.hint("--kv-byte", known) == "did you mean 'kv_bytes'?"
    assert names.hint("bytes", known) == "did you mean 'kv_bytes'?"  # the longer form of it is not named beside
    assert names.hint("tokens", (*known, "output_tokens", "max_tokens_a")) == (
        "did you mean 'input_tokens' or 'max_tokens_a'?"
    )
    assert names.hint("zzz", known) == ""


# --- routing traces


def test_choices_of_a_trace_by_token_layer_and_score():
    text = "token,layer,expert\n1,0,5\n0,1,2\n0,0,7\n0,0,3\n0,1,4\n1,0,6\n1,1,1\n1,1,0\n"
    assert is_trace(text)
    assert not is_trace("expert,layer,token\n")
    assert trace_of(text, "f").tolist() == [[[7, 3], [2, 4]], [[5, 6], [1, 0]]]


@pytest.mark.parametrize(
    "rows",
    [
        "0,0,1\n0,1,1\n1,0,1",  # a line is missing
        "0,0,1\n0,0,2\n0,1,1\n1,0,1",  # two experts here, one there: as many lines as for one each
        "0,0,1\n0,0,2\n1,1,1\n1,1,2",  # each token in another layer
        "0,0,1\n2,0,1\n2,0,3",  # a token is left out
    ],
)
def test_every_token_chooses_as_many_experts_in_every_layer(rows):
    with pytest.raises(ScenarioError, match="as many experts in every layer"):
        trace_of(f"token,layer,expert\n{rows}\n", "f")


@pytest.mark.parametrize("rows", ["0,0,-1\n1,0,1", "0,0,65537\n1,0,1", "99999,0,1\n1,0,1"])
def test_numbers_of_a_trace_begin_at_0_without_gaps(rows):
    with pytest.raises(ScenarioError, match="counted from 0, without gaps"):
        trace_of(f"token,layer,expert\n{rows}\n", "f")


# --- kept cache


def test_what_is_kept_of_a_prompt():
    """Of a budget of 8 all is in the window of 8 last tokens; scoring counts as heads do, in every layer."""
    assert kept_cache.compression_of(read_scenario({}), LLAMA) == kept_cache.Compression()
    half = kept_cache.compression_of(read_scenario({"kv_kept_tokens": 0.5, "kv_kept_bytes": 0.25}), LLAMA)
    assert (half.kept_tokens_frac, half.kept_bytes_frac) == (0.5, 0.25)
    chosen = kept_cache.compression_of(read_scenario({"kv_selection": "snapkv", "kv_budget_tokens": 8}), LLAMA)
    assert (chosen.budget_tokens, chosen.window_tokens) == (8, 8)
    flops, moved = kept_cache.scoring(32, 128, 32, 8 * 128 * 2.0 * 32)  # key heads of bf16, over 32 layers
    assert (chosen.flops_per_token, chosen.score_bytes_per_token) == (flops, moved)
    lot = kept_cache.compression_of(read_scenario({"kv_selection": "random", "kv_budget_tokens": 4096}), LLAMA)
    assert (lot.flops_per_token, lot.score_bytes_per_token) == (0.0, 0.0)
    assert lot.window_tokens == kept_cache.WINDOW_TOKENS


def test_maps_of_a_short_prompt_and_of_a_long_one(monkeypatch):
    """As many keys as there are tokens, 2 at least and 4096 at most, a budget in proportion."""
    asked = []

    def drawn(law, keys, later, seed):
        asked.append((keys, later, seed))
        return np.zeros((1, later + 1, keys)), None

    monkeypatch.setattr(kept_cache, "drawn_maps", drawn)
    budgets = []
    monkeypatch.setattr(
        kept_cache, "_recalls", lambda maps, later, budget, seed: budgets.append(budget) or {"snapkv": 0.1 * seed}
    )
    monkeypatch.setattr(kept_cache, "WAYS", ("snapkv",))
    kept_cache._on_drawn.cache_clear()
    assert kept_cache._on_drawn(100, 30, 2) == {"snapkv": pytest.approx(0.1)}
    assert asked == [(100, 32, 6), (100, 32, 7), (100, 32, 8)]
    assert budgets == [30, 30, 30]
    kept_cache._on_drawn(40960, 1000, 0)
    kept_cache._on_drawn(1, 1, 0)
    assert [keys for keys, _, _ in asked[3::3]] == [4096, 2]
    assert budgets[3::3] == [100, 2]
    kept_cache._on_drawn.cache_clear()


def test_a_cache_follows_activations_and_engines():
    engine = SimpleNamespace(sparse_kv="", kv_follows_weights="")
    assert resolve.cache_beside("bf16", "bf16", engine, H100, LLAMA) == "bf16"
    assert resolve.cache_beside("fp8", "fp8", engine, H100, LLAMA) == "bf16"
    follows = SimpleNamespace(sparse_kv="", kv_follows_weights="fp8")
    assert resolve.cache_beside("fp8", "fp8", follows, H100, LLAMA) == "fp8"
    assert resolve.cache_beside("fp8_block", "fp8", follows, H100, LLAMA) == "fp8"
    assert resolve.cache_beside("int8", "int8", follows, H100, LLAMA) == "bf16"
    own = replace(LLAMA, cache_format="fp8")
    assert resolve.cache_beside(own.weights_format, "bf16", follows, H100, own) == "fp8"
    assert resolve.cache_beside(own.weights_format, "bf16", engine, H100, own) == "bf16"
    assert resolve.held_format("fp8", replace(LLAMA, weights_format="fp8_block")) == "fp8_block"
    assert resolve.held_format("fp8", LLAMA) == "fp8"

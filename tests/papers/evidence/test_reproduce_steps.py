"""Papers re-run by steps: each mechanism points the right way, and falls silent at its limit."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.catalog.models import get_model
from orrery.evidence.paper_file import get_paper
from orrery.execution.finetune_memory import activations, adapter_bytes
from orrery_papers.energonai import predict as energonai
from orrery_papers.flexllm import predict as flexllm
from orrery_papers.ladder_residual import predict as ladder_residual
from orrery_papers.long_context_peak import predict as long_context_peak
from orrery_papers.nanoflow import predict as nanoflow
from orrery_papers.pipellm import predict as pipellm
from orrery_papers.shared.passes import decodes, halved, overlapped_s, pass_of, prompts, with_network
from orrery_papers.tokenweave import predict as tokenweave
from orrery_papers.vllm_hyperparameters import predict as vllm_hyperparameters


def claim(key, name):
    return next(c for c in get_paper(key).claims if c.id == name)


@pytest.fixture(scope="module")
def seventy():
    """70B over eight devices."""
    return ladder_residual.serving(get_paper("ladder-residual").setups["llama-70b"])


def test_half_of_a_batch_is_half_of_its_sequences_or_of_a_lone_prompt():
    two, lone = halved(prompts(np.array([100]), 2)), halved(prompts(np.array([100])))
    assert two.num_tokens.tolist() == [100]
    assert lone.num_tokens.tolist() == [50]
    assert lone.prompt_context_tokens.tolist() == [75]  # its halves end at 50 and at 100
    assert halved(decodes(np.array([9]), np.array([7]))).decode_sequences.tolist() == [5]


def test_two_halves_take_at_least_as_long_as_the_whole(seventy):
    done = pass_of(seventy, decodes(np.array([1, 8, 64, 512]), np.full(4, 1000)))
    assert (done.halves_s >= done.total_s).all()
    assert np.allclose(done.kernels_s + done.network_s, done.total_s)


def test_ladder_gains_nothing_over_a_link_that_takes_no_time(seventy):
    done = pass_of(seventy, decodes(np.array([1, 16, 64]), np.full(3, 1000)))
    gains = []
    for faster in (1.0, 10.0, 1e3, 1e6):
        plain = with_network(done, done.network_s / faster)
        gains.append(plain.total_s / overlapped_s(plain, "ladder-residual") - 1.0)
    assert (gains[0] > 0.1).all()
    assert all((a > b).all() for a, b in pairwise(gains))
    assert (gains[-1] < 1e-5).all()


def test_ladder_gains_nothing_on_one_device():
    words = get_paper("ladder-residual").setups["llama-70b"]
    alone = replace(words, inputs={k: v for k, v in words.inputs.items() if k != "layout"})
    d = ladder_residual.deployment(alone, model="llama-3.1-8b")
    t = ladder_residual.times(d, 4, True)
    assert t["decode"] == pytest.approx(t["plain_decode"])
    assert t["network"] == 0.0


def test_copies_through_the_host_take_longer_and_hide_more(seventy):
    fast, slow = (ladder_residual.times(seventy, 1, p) for p in (True, False))
    assert slow["network"] > fast["network"]
    assert slow["plain_decode"] / slow["decode"] > fast["plain_decode"] / fast["decode"] > 1.0


def test_the_split_hides_norms_too_so_it_can_beat_a_run_without_communication():
    t = tokenweave.prefills(tokenweave.serving(claim("tokenweave", "llama-tp8-8192")), 16384)
    assert t[8192]["prefill_time"] < t[8192]["prefill_time_no_communication"] < t[8192]["baseline_prefill_time"]


def test_short_prompts_gain_nothing_from_the_split_and_it_never_costs():
    t = tokenweave.prefills(tokenweave.serving(claim("tokenweave", "llama-tp8-8192")), 16384)
    assert t[64]["speedup"] == pytest.approx(1.0, abs=0.02)
    assert all(x["speedup"] >= 1.0 for x in t.values())
    assert t[8192]["speedup"] > t[1024]["speedup"] > t[256]["speedup"]


def test_a_symmetric_buffer_only_saves_time():
    d = tokenweave.deployment(claim("tokenweave", "llama-tp8-8192").setup, version=tokenweave.VERSION)
    tokens = np.array([64, 1024, 8192])
    assert (pass_of(tokenweave.symmetric(d), prompts(tokens)).network_s <= pass_of(d, prompts(tokens)).network_s).all()


def test_nano_batches_need_kernels_of_different_kinds(seventy):
    done = pass_of(seventy, nanoflow.steady(2048, 512, 512))
    alike = replace(done, total_s=done.kernels_s, network_s=0.0 * done.network_s, memory_s=0.0 * done.memory_s)
    assert overlapped_s(done, "nano-batches")[0] < done.total_s[0]
    assert overlapped_s(alike, "nano-batches")[0] == pytest.approx(alike.total_s[0])


def test_a_steady_step_has_the_ratio_of_prompts_to_answers():
    batch = nanoflow.steady(2048, 512, 1024)
    assert batch.num_tokens[0] == pytest.approx(2048, rel=0.01)
    assert batch.decode_sequences[0] == pytest.approx(2048 * 2 / 3, abs=1)
    assert nanoflow.steady(2048, 512, 0).decode_sequences[0] == 0


def test_the_optimum_follows_rate_and_parameters():
    d = nanoflow.dense(get_paper("nanoflow").setups["llama-70b"])
    assert nanoflow.optimal_tokens_per_s(d, 260e12) == pytest.approx(1857, rel=0.03)


def test_padding_that_is_dropped_is_time_saved():
    mean = get_paper("energonai").setups["tensor-parallel"].number("input_mean_tokens")
    saved = 1.0 - energonai.tensor_s(mean, 2, "packed-batch") / energonai.tensor_s(mean, 2, "request-level")
    empty = 1.0 - energonai.lengths(mean, energonai.NUM_BATCHES).mean() / energonai.LONGEST_TOKENS
    assert 0.5 * empty < saved < 1.05 * empty


def test_finetuning_gives_way_to_requests_and_gets_the_rest():
    words, case = get_paper("flexllm").setups["co-serving"], flexllm.CASES[0]
    heavy, light, none = (flexllm.retained(words, case, r) for r in (20.0, 4.0, 0.1))
    assert 0.3 < heavy < light < none <= 1.02
    assert none > 0.95


def test_adapters_need_fewer_activations_than_operators_leave():
    model = get_model("llama-3.1-8b")
    fused, matrices = activations(model, 4096), activations(model, 4096, is_attention_fused=False)
    assert 1.5 < fused.ratio < matrices.ratio
    assert fused.needed_bytes == matrices.needed_bytes
    assert matrices.all_bytes - fused.all_bytes == 2 * 2.0 * 32 * 4096 * 32  # two 16-bit matrices, 32 heads, 32 layers
    assert activations(model, 4096, rank=64).needed_bytes > fused.needed_bytes
    assert adapter_bytes(model, 32) == 2 * adapter_bytes(model, 16)


def test_finetuning_memory_refuses_what_it_does_not_know():
    with pytest.raises(ScenarioError, match="dense layers"):
        activations(get_model("mixtral-8x7b"), 1024)


def test_streamed_weights_take_the_longer_of_kernels_and_copies():
    assert pipellm.streamed_s(1.0, 0.0, 10, 5.0) == 1.0
    assert pipellm.streamed_s(1.0, 1.0, 10, 0.5) == pytest.approx(0.5 * 10 + 0.1)
    assert pipellm.streamed_s(10.0, 1.0, 10, 0.1) == pytest.approx(10.0 + 0.1)


def test_a_cipher_in_turn_costs_most_and_one_ahead_costs_the_slower_link():
    words = get_paper("pipellm").setups["opt-66b"]
    plain, serial, ahead = (pipellm.offloaded(words, t) for t in (pipellm.PLAIN, pipellm.SERIAL, pipellm.PIPELINED))
    assert serial < 0.2 * plain
    assert serial < pipellm.offloaded(words, pipellm.PIPELINED, hit_frac=0.0) < ahead < plain


def test_swapping_moves_bytes_only_where_caches_overflow():
    words = get_paper("pipellm").setups["opt-30b"]
    run = pipellm.swapping_run(words, pipellm.PLAIN)
    assert run.counters["swapped_bytes"] > 0
    assert pipellm.swapped(words, pipellm.SERIAL) < pipellm.swapped(words, pipellm.PLAIN)


def test_settings_have_a_best_one_that_is_not_the_largest():
    words = get_paper("vllm-hyperparameters").setups["grid"]
    found = vllm_hyperparameters.static(words, "codellama-34b", "a100")
    most = max(n for _, n in found)
    rates = [found[b, most] for b in vllm_hyperparameters.BATCHES if (b, most) in found]
    best = rates.index(max(rates))
    assert 0 < best < len(rates) - 1  # padding grows with the batch, and the last batch is a small one


def test_continuous_batches_beat_padded_ones():
    words = get_paper("vllm-hyperparameters").setups["grid"]
    static = vllm_hyperparameters.static(words, "bloom-1b7", "v100")
    assert vllm_hyperparameters.retuned(static, static) == 0.0
    assert vllm_hyperparameters.retuned({}, static) is None
    carried = vllm_hyperparameters.retuned({(512, 8): 1.0}, {(4, 2): 2.0, (8, 1): 3.0})
    assert carried == pytest.approx(0.5)  # as many GPUs as there are, then half the batch until it fits


def test_every_way_to_keep_less_lowers_what_long_contexts_cost():
    rows = long_context_peak.table(get_paper("long-context-peak"))
    short, long, *options = rows.values()
    assert long.kv_bytes == pytest.approx(12.5 * short.kv_bytes)
    assert short.concurrency > long.concurrency
    assert short.prefill_s < long.prefill_s
    assert short.context_switch_s < long.context_switch_s
    for retained in options:
        assert retained.kv_bytes < long.kv_bytes
        assert retained.context_switch_s < long.context_switch_s
        assert retained.one_decode_step_s < long.one_decode_step_s
        assert retained.concurrency >= long.concurrency

"""From the device's time of a step to the wall's: the host's work and its launches, worked out by hand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.batch import Batch
from orrery.execution.host import graph_seqs, graph_tokens, is_graph, launches_s, pieces_s, wall_s
from orrery.execution.memory import Infeasible
from orrery.execution.shard import num_kernels
from orrery.execution.speculation import Speculation
from orrery.serving.clock import tick
from orrery.serving.metrics.latencies import latencies
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate


@pytest.fixture
def engine(deploy):
    """2 ms a step, 10 us a sequence, 100 us a kernel; graphs of up to 512 sequences."""
    return replace(
        deploy().engine,
        step_s=2e-3,
        per_sequence_s=1e-5,
        launch_s=1e-4,
        sampling_s=0.0,
        has_cuda_graphs=True,
        max_num_graph_seqs=512,
        max_num_graph_tokens=0,
        overlap_frac=0.0,
    )


def wall(engine, device_s, seqs, launch_s):
    return float(wall_s(engine, np.array([device_s]), np.array([seqs]), launch_s)[0])


def test_a_graph_pays_the_hosts_step_and_no_launches(engine):
    assert wall(engine, 10e-3, 100, 0.0) == pytest.approx(10e-3 + 2e-3 + 1e-3)


def test_launches_run_beside_the_device(engine):
    """32 kernels x 100 us = 3.2 ms: hidden behind 10 ms of kernels, and all that there is beside 1 ms of them."""
    assert wall(engine, 10e-3, 0, 3.2e-3) == pytest.approx(10e-3 + 2e-3)
    assert wall(engine, 1e-3, 0, 3.2e-3) == pytest.approx(3.2e-3 + 2e-3)


def test_with_asynchronous_scheduling_one_thread_does_both(engine):
    """2 ms of scheduling and 3.2 ms of launches for each step: the device waits where it needs less than 5.2 ms."""
    ahead = replace(engine, overlap_frac=1.0)
    assert wall(ahead, 10e-3, 0, 3.2e-3) == pytest.approx(10e-3)
    assert wall(ahead, 4e-3, 0, 3.2e-3) == pytest.approx(5.2e-3)
    half = replace(engine, overlap_frac=0.5)  # half of the scheduling shows
    assert wall(half, 10e-3, 0, 3.2e-3) == pytest.approx(10e-3 + 1e-3)


def test_the_next_step_waits_for_every_sequence_to_be_sampled(engine):
    """100 sequences at 30 us are 3 ms, also where all scheduling is done ahead; a slower host hides them."""
    ahead = replace(engine, sampling_s=30e-6, overlap_frac=1.0)
    assert wall(ahead, 10e-3, 100, 0.0) == pytest.approx(10e-3 + 3e-3)
    assert wall(replace(ahead, overlap_frac=0.0), 10e-3, 100, 0.0) == pytest.approx(10e-3 + 3e-3 + 2e-3 + 1e-3)
    assert wall(replace(ahead, step_s=50e-3), 10e-3, 100, 0.0) == pytest.approx(51e-3)


def steps(prompts, decodes):
    p, d = np.array(prompts), np.array(decodes)
    return Batch(
        prompt_sequences=p,
        prompt_tokens=64 * (p > 0),
        prompt_context_tokens=64 * (p > 0),
        decode_sequences=d,
        decode_context_tokens=1000 * (d > 0),
    )


def test_decodes_alone_are_a_graph_up_to_the_largest_captured(deploy, engine):
    batch = steps([0, 0, 0, 1, 1], [1, 512, 513, 0, 8])
    assert is_graph(replace(deploy(), engine=engine), batch).tolist() == [True, True, False, False, False]
    assert not is_graph(replace(deploy(), engine=replace(engine, has_cuda_graphs=False)), batch).any()


@pytest.mark.parametrize(("tp", "seqs"), [(1, 512), (2, 512), (4, 1024), (8, 1024)])
def test_graphs_may_be_larger_where_four_devices_share_tensors(deploy, engine, tp, seqs):
    made = deploy(tp=tp, device="h200-sxm")
    assert graph_seqs(replace(made, engine=replace(engine, max_num_wide_graph_seqs=1024))) == seqs
    assert graph_seqs(replace(made, engine=engine)) == 512
    assert graph_seqs(replace(made, engine=replace(engine, has_cuda_graphs=False))) == -1


def test_pieces_of_plain_steps_alone(deploy, engine):
    """Of latent attention fewer tokens; none where a step has drafts, or ranks of attention beside experts."""
    plain = replace(engine, max_num_graph_tokens=8192, max_num_latent_graph_tokens=2048, has_plain_pieces=True)
    dense = replace(deploy(tp=4), engine=plain)
    latent = replace(deploy(model="deepseek-ai/DeepSeek-V3", tp=8, device="h200-sxm"), engine=plain)
    assert (graph_tokens(dense), graph_tokens(latent)) == (8192, 2048)
    assert graph_tokens(replace(latent, engine=replace(plain, max_num_latent_graph_tokens=0))) == 8192
    ranks = replace(latent.layout, tp=1, dp=8)
    assert graph_tokens(replace(latent, layout=ranks)) == -1
    assert graph_tokens(replace(latent, layout=ranks, engine=replace(plain, has_plain_pieces=False))) == 2048
    assert graph_tokens(replace(dense, layout=replace(dense.layout, pp=2))) == -1
    assert graph_tokens(replace(dense, draft_head=SimpleNamespace(num_tokens=3))) == -1


def test_kernels_of_a_pass_are_counted(deploy):
    """Llama 70B over 4 devices, 80 layers: 4 products, rotary and attention, 2 norms, an activation, 2 all-reduces; and
    the head. Alone there is no all-reduce. Qwen3 30B, 48 layers: 3 products (the router's, too), 7 for the experts."""
    assert num_kernels(deploy(tp=4)) == 80 * (4 + 2 + 2 + 1 + 2) + 1
    assert num_kernels(deploy(tp=1, device="h200-sxm", weights="fp8")) == 80 * (4 + 2 + 2 + 1) + 1
    blocks = deploy(tp=1, device="h200-sxm", weights="fp8_block", activations="fp8_block")
    assert num_kernels(blocks) == 80 * (2 * 4 + 2 + 2 + 1) + 1, (
        "each block's scale follows its values: a kernel of its own"
    )
    assert num_kernels(deploy(model="Qwen/Qwen3-30B-A3B", tp=1)) == 48 * (3 + 2 + 7 + 2) + 1


def test_a_step_of_a_deployment_waits_for_its_launches(deploy, engine):
    """A prompt of 64 tokens takes 4 H100 less than 881 kernels take to be launched at 100 us each."""
    slow = replace(deploy(tp=4), engine=engine)
    assert launches_s(slow) == pytest.approx(88.1e-3)
    found = tick(slow, steps([1, 0], [0, 1]))
    assert found.time_s[0] == pytest.approx(88.1e-3 + 2e-3 + 1e-5)
    assert found.time_s[1] == pytest.approx(found.done.time_s[1] + 2e-3 + 1e-5)
    assert found.host_s == pytest.approx([90.11e-3, 2.01e-3])


def test_stages_of_a_pipeline_launch_their_own_layers(deploy, engine):
    one = replace(deploy(tp=4), engine=engine)
    cut = replace(one, layout=replace(one.layout, pp=2))
    found = tick(cut, steps([1], [0]))
    assert found.stage_s[0] == pytest.approx(88.1e-3 / 2 + 2e-3 + 1e-5)


def test_small_steps_with_prompts_are_replayed_in_pieces(deploy, engine):
    """80 layers, each two kernels of attention and one piece: 240 of 881 kernels, up to 512 tokens and no further.

    64 tokens of a prompt and 448 decodes are 512; a decode more is launched kernel by kernel.
    """
    one = replace(deploy(tp=4), engine=replace(engine, max_num_graph_tokens=512))
    assert pieces_s(one) == pytest.approx(24e-3)
    found = tick(one, steps([1, 1], [448, 449]))
    assert found.host_s - 2e-3 - 1e-5 * np.array([449, 450]) == pytest.approx([24e-3, 88.1e-3])


def test_the_simulator_launches_as_the_closed_form_does(deploy, engine):
    """One request, alone: its prompt's step waits for the launches and its decode steps do not."""
    slow = replace(deploy(tp=4), engine=replace(engine, launch_s=1e-3, request_s=0.0, per_prompt_token_s=0.0))
    run = simulate(
        Service(pools=(Pool(deployment=slow),)),
        Requests(arrive_s=np.zeros(1), input_tokens=np.array([64]), output_tokens=np.array([3])),
    )
    assert not isinstance(run, Infeasible)
    prompt, decode = tick(slow, steps([1, 0], [0, 1])).time_s
    times = latencies(run)
    assert times.ttft_s[0] == pytest.approx(881e-3 + 2e-3 + 1e-5)
    assert times.ttft_s[0] == pytest.approx(prompt)
    assert times.tpot_s[0] == pytest.approx(decode, rel=0.05)


def test_steps_that_check_guesses_are_graphs_too(deploy, engine):
    """Captured with their guesses: 881 kernels at 10 ms each show in the prompt's step, and in no later one."""
    slow = replace(deploy(tp=4), engine=replace(engine, launch_s=1e-2, request_s=0.0))
    guessing = Speculation(kind="prompt-lookup", draft_tokens=2, acceptance_fracs=(0.5, 0.5))
    run = simulate(
        Service(pools=(Pool(deployment=slow),), speculation=guessing),
        Requests(arrive_s=np.zeros(1), input_tokens=np.array([64]), output_tokens=np.array([30])),
    )
    assert not isinstance(run, Infeasible)
    times = latencies(run)
    assert times.ttft_s[0] > 8.81
    assert times.tpot_s[0] < 0.1

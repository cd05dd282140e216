"""One step of RL post-training: phases that add up, hand-overs by hand, rollouts as the serving simulator has them."""

from dataclasses import replace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.frameworks import get_framework
from orrery.catalog.models import get_model
from orrery.catalog.rl_frameworks import get_rl_framework
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.recipe_registry import get_recipe
from orrery.hardware.cluster import Cluster
from orrery.rl.engine import deployed
from orrery.rl.job import Reward, RlJob
from orrery.rl.rollout import rollouts
from orrery.rl.step import rl_step
from orrery.rl.sync import num_tensors, offload_s, offloaded_bytes, reference_bytes, weight_sync_s
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.simulation.simulate import simulate
from orrery.serving.synthesis.lengths import Length
from orrery.training.columns import columns_of
from orrery.training.step import step_of

H100 = get_device("h100-sxm")
EIGHT_B = get_model("llama-3.1-8b")


def job_of(*, devices: int = 8, layout: TrainingLayout | None = None, **more) -> RlJob:
    layout = layout or TrainingLayout(dp=devices, sharding="zero1", recompute="full")
    training = TrainingJob(
        model=EIGHT_B,
        cluster=Cluster(device=H100, num_devices=devices, devices_per_node=8),
        seq_len=2048,
        framework=get_framework("megatron-bridge", H100, "bf16"),
        recipe=get_recipe("bf16"),
        global_batch=64,
    )
    engine = Deployment(
        model=EIGHT_B,
        cluster=Cluster(device=H100, num_devices=1, devices_per_node=8),
        layout=Layout(),
        formats=Formats(weights="bf16", activations="bf16", kv="bf16"),
        engine=get_engine("vllm", "0.11", H100),
        memory_utilization_frac=0.6,
        mode="offline",
    )
    given = {
        "framework": get_rl_framework("nemo-rl"),
        "training": training,
        "layout": layout,
        "generation": engine,
        "replicas": devices,
        "num_prompts": 16,
        "group": 8,
        "prompt": Length(mean_tokens=128, law="constant"),
        "response": Length(mean_tokens=500, std_tokens=500, most_tokens=1900),
        "num_updates": 2,
    }
    return RlJob(**{**given, **more})


def test_phases_of_a_step_in_turn_add_up():
    step = rl_step(job_of(reward=Reward(sample_s=0.5, workers=16)))
    assert step.time_s == pytest.approx(sum(step.phases.values()))
    assert step.phases["reward"] == pytest.approx(128 * 0.5 / 16)
    swapped_s = 2 * reference_bytes(step.job, step.passes.ranks) / H100.host.each_way_bytes_per_s
    assert step.phases["reference log-probabilities"] == pytest.approx(step.phases["log-probabilities"] + swapped_s)
    assert reference_bytes(step.job, step.passes.ranks) == pytest.approx(2.0 * EIGHT_B.num_parameters, rel=0.01)
    assert step.phases["generation"] == step.rollouts.time_s
    assert step.limited_by in step.phases
    assert step.training_idle_s == 0.0 <= step.generation_idle_s


def test_updates_cost_what_training_steps_do():
    job = job_of(num_epochs=3)
    step = rl_step(job)
    packing = step.passes.packing
    training = replace(
        job.training, seq_len=packing.seq_len, global_batch=packing.micro_batch * packing.num_micro_batches * 8
    )
    one = step_of(training, columns_of([replace(job.layout, micro_batch=packing.micro_batch)]))
    assert step.phases["policy training"] == pytest.approx(3 * 2 * float(one.time_s[0]))
    assert step.phases["log-probabilities"] < step.phases["policy training"] / 3


def test_separate_pools_in_turn_wait_for_each_other():
    """Without staleness the step is rollouts, passes and hand-over, one after the other, and nothing is offloaded."""
    job = job_of(is_colocated=False, offloads=False)
    step = rl_step(job)
    assert "offload" not in step.phases
    assert step.time_s == pytest.approx(
        step.rollouts.time_s + step.passes.time_s + weight_sync_s(job) + job.framework.step_s
    )
    assert step.training_idle_s == pytest.approx(step.rollouts.time_s)
    assert step.generation_idle_s == pytest.approx(step.time_s - step.rollouts.busy_s)


def test_side_by_side_the_slower_pool_decides():
    job = job_of(is_colocated=False, offloads=False, max_staleness=1, updates_in_flight=False)
    step = rl_step(job)
    work_s = step.passes.time_s + job.framework.step_s
    assert step.time_s == pytest.approx(max(step.rollouts.time_s, work_s) + weight_sync_s(job))
    in_turn = rl_step(replace(job, max_staleness=0))
    in_flight = rl_step(replace(job, updates_in_flight=True))
    staler = rl_step(replace(job, updates_in_flight=True, max_staleness=3))
    assert staler.time_s <= in_flight.time_s * 1.02 <= step.time_s * 1.04 <= in_turn.time_s
    assert staler.time_s >= work_s


def test_weights_over_the_slowest_link_and_a_tensor_at_a_time():
    """Two pipeline stages on 16 devices hold half a model each: half is gathered inside a node."""
    job = job_of(devices=16, layout=TrainingLayout(pp=2, dp=8, sharding="zero1"))
    size = 2.0 * EIGHT_B.num_parameters
    assert num_tensors(EIGHT_B) == 32 * 9 + 3
    gathered_s = size / 2 / H100.scaleup.each_way_bytes_per_s
    assert weight_sync_s(job) == pytest.approx(gathered_s + 291 * job.framework.colocated_tensor_s)
    apart = replace(job, is_colocated=False)
    sent_s = size / (job.framework.broadcast_ratio * H100.scaleout.each_way_bytes_per_s)
    packed_s = gathered_s + 291 * job.framework.separate_tensor_s
    assert weight_sync_s(apart) == pytest.approx(max(sent_s, packed_s))


def test_state_leaves_and_comes_back():
    job = job_of()
    step = rl_step(job)
    state = offloaded_bytes(step.passes.ranks)
    parts = step.passes.ranks[0].parts
    assert state == pytest.approx(parts["weights"] + parts["optimizer"])
    both_s = 2 * job.framework.sleep_s + 2 * state / job.framework.offload_bytes_per_s
    assert step.phases["offload"] == offload_s(job, step.passes.ranks) == pytest.approx(both_s)
    retained = rl_step(replace(job, offloads=False))
    assert retained.phases["offload"] == pytest.approx(2 * job.framework.sleep_s)
    assert retained.generator.parts["trainer"] - step.generator.parts["trainer"] == pytest.approx(state)


def test_rollouts_are_a_closed_batch_of_the_serving_simulator():
    """Equal sequences, one to a replica: nothing to deal out, so the run is the simulator's own."""
    job = job_of(num_prompts=8, group=1, response=Length(mean_tokens=400, law="constant"))
    found = rollouts(job)
    requests = Requests(arrive_s=np.zeros(8), input_tokens=np.full(8, 128), output_tokens=np.full(8, 400))
    alone = simulate(Service(pools=(Pool(deployment=deployed(job), replicas=8),), router="round-robin"), requests)
    assert found.time_s == pytest.approx(float(alone.finish_s.max()))
    assert found.tail_s == pytest.approx(0.0, abs=1e-9)
    assert found.written_tokens == 8 * 400


def test_log_probabilities_cost_the_host_a_share_of_every_step():
    """One sequence to a replica: so many seconds longer a token."""
    job = job_of(num_prompts=8, group=1, response=Length(mean_tokens=400, law="constant"))
    silent = replace(job, framework=replace(job.framework, returns_logprobs=False))
    more_s = rollouts(job).time_s - rollouts(silent).time_s
    assert more_s == pytest.approx(400 * job.framework.logprob_s, rel=0.01)


def test_the_tail_is_what_partial_rollouts_and_tail_batching_take_away():
    job = job_of(num_prompts=32, response=Length(mean_tokens=400, std_tokens=600, most_tokens=8000))
    waits = rollouts(job)
    partial = rollouts(replace(job, tail="partial", oversampling_ratio=1.5))
    batched = rollouts(replace(job, tail="batching", oversampling_ratio=1.25))
    assert partial.time_s < waits.time_s
    assert batched.time_s < waits.time_s
    assert partial.tail_s < waits.tail_s
    assert len(batched.rounds) == 5  # four short ones put a quarter of the prompts off, and a long one
    assert sum(r.lengths.response.size for r in partial.rounds) == 3 * 32 * 8
    short, long = batched.rounds[0], batched.rounds[-1]
    assert short.lengths.response.mean() < long.lengths.response.mean()


@pytest.mark.parametrize("tail", ["partial", "batching"])
def test_without_oversampling_both_are_waiting(tail):
    job = job_of()
    assert rollouts(replace(job, tail=tail)).time_s == pytest.approx(rollouts(job).time_s, rel=0.1)
    if tail == "batching":
        assert rollouts(replace(job, tail=tail)).time_s == rollouts(job).time_s


def test_groups_that_teach_nothing_are_written_too():
    whole, half = rollouts(job_of()), rollouts(job_of(kept_frac=0.5))
    assert half.written_tokens > 1.6 * whole.written_tokens
    assert half.rounds[0].lengths.response.size == whole.rounds[0].lengths.response.size


def test_a_critic_reads_and_learns_as_much_as_the_policy():
    step = rl_step(job_of(algorithm="ppo", critic=EIGHT_B))
    assert step.phases["values"] == pytest.approx(step.phases["log-probabilities"])
    assert step.phases["critic training"] == pytest.approx(step.phases["policy training"])
    assert step.trainer.parts["critic"] > 0.0

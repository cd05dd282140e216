"""Ties and first steps of searches, and what a launch says of degrees of one: by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.execution.train.layout import TrainingLayout
from orrery.planner.architecture.evolution import _ranked
from orrery.planner.launch import tensorrt_llm
from orrery.planner.launch.training import deepspeed, torchtitan
from orrery.planner.plan import Plan
from orrery.planner.rlhf import generation, search, ways
from orrery.planner.rlhf.generation import Generation
from orrery.planner.rlhf.plan import Evaluator
from orrery.planner.training import nearby


def test_equals_do_not_beat_each_other():
    """Two alike at (1, 1) and one at (2, 0) are beaten by none: the better in the goal comes first."""
    costs = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    assert _ranked(costs).tolist() == [1, 2, 0]
    worse = np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 3.0, 1.0]])  # as fast and larger; outside a limit
    assert _ranked(worse).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    ("degrees", "keys"),
    [
        ({}, set()),
        ({"tp": 2}, {"tensor_parallel"}),
        ({"ep": 2}, {"expert_parallel"}),
        ({"cp": 2}, {"sequence_parallel_size", "data_parallel_size"}),
        ({"pp": 2}, {"pipeline"}),
    ],
)
def test_deepspeed_is_told_of_degrees_above_one(monkeypatch, degrees, keys):
    monkeypatch.setattr(deepspeed, "experts_of", lambda job: "experts")
    found = deepspeed._parallel(SimpleNamespace(), TrainingLayout(**degrees))
    assert found.keys() == keys
    for name, size in (("tensor_parallel", "autotp_size"), ("expert_parallel", "autoep_size"), ("pipeline", "stages")):
        if name in keys:
            assert found[name][size] == 2


def test_a_dense_model_has_no_experts_to_place(monkeypatch):
    monkeypatch.setattr(deepspeed, "experts_of", lambda job: None)
    assert deepspeed._parallel(SimpleNamespace(), TrainingLayout(ep=2)) == {}


def test_a_pipeline_keeps_what_each_of_its_layers_recomputes():
    plain, full = (
        deepspeed._parallel(SimpleNamespace(), TrainingLayout(pp=2, recompute=kind)) for kind in ("none", "full")
    )
    assert plain["pipeline"]["activation_checkpoint_interval"] == 0
    assert full["pipeline"]["activation_checkpoint_interval"] == 1


def test_a_written_token_sees_its_prompt_itself_and_those_before_it(monkeypatch):
    """Four places write 40 tokens in all at every moment: each sees 100 of the prompt, itself and 10; the cache is
    fullest with 3 places that hold 60."""
    places = SimpleNamespace(
        num_steps=8,
        active=lambda at: (np.full(at.size, 4.0), np.full(at.size, 40.0)),
        fullest=(3.0, 60.0),
    )
    asked = []
    monkeypatch.setattr(generation, "slowest", lambda *given: asked.append(given[1:]) or places)
    job = SimpleNamespace(prompt_tokens=100, responses=(5,) * 21)
    found = generation._unequal(job, batch=4, waves=2)
    assert asked == [(3, 4)]  # 21 responses over 3 replicas of 4 x 2 places
    assert set(found.context_tokens.tolist()) == {111.0}
    assert (found.num_steps, found.cached_sequences, found.cached_tokens) == (8, 3.0, 121.0)
    assert found.share_frac.sum() == pytest.approx(1.0)


def test_of_plans_that_take_as_long_the_first_stays(monkeypatch):
    monkeypatch.setattr(search, "_cost", lambda evaluator, placed: (1.0, True))
    ways = ({1: [SimpleNamespace(time_s=1.0), SimpleNamespace(time_s=1.0)]},)
    job = SimpleNamespace(cluster=SimpleNamespace(num_devices=2))
    start = ["start"]
    found = search._chain(
        SimpleNamespace(ways=ways, job=job), SimpleNamespace(plan=lambda best: best), list(start), 50, 0, 0
    )
    assert found == start


@pytest.mark.parametrize(("price", "is_taken"), [(1.0 + 1e-6, True), (1.05, True), (1.2, False)])
def test_a_slightly_worse_plan_is_gone_on_from_and_a_much_worse_one_is_not(monkeypatch, price, is_taken):
    """A lot of 0.5 takes what costs less than ln 2 tenths more: at first a tenth of the cost is the temperature."""
    seen = []

    def cost(evaluator, placed):
        seen.append(tuple(p if isinstance(p, str) else p.way.name for p in placed))
        return {("a", "b"): (1.0, True)}.get(seen[-1], (price, True))

    lots = np.array([[0.0, 0.0, 0.0, 0.0, 0.5], [0.9, 0.0, 0.0, 0.0, 0.5]])
    monkeypatch.setattr(search, "_cost", cost)
    monkeypatch.setattr(search, "stream", lambda *_: SimpleNamespace(random=lambda shape: lots))
    ways = tuple({1: [SimpleNamespace(name=name)]} for name in ("c", "d"))
    job = SimpleNamespace(cluster=SimpleNamespace(num_devices=1))
    space, evaluator = SimpleNamespace(ways=ways, job=job), SimpleNamespace(plan=lambda best: best)
    assert search._chain(space, evaluator, ["a", "b"], 2, 0, 0) == ["a", "b"]
    assert seen == [("a", "b"), ("c", "b"), ("c", "d") if is_taken else ("a", "d")]


@pytest.mark.parametrize(
    ("tp", "is_sequence_parallel", "is_shared"), [(2, True, True), (2, False, False), (1, True, False)]
)
def test_activations_are_shared_where_tensors_and_sequences_are(monkeypatch, tp, is_sequence_parallel, is_shared):
    monkeypatch.setattr(deepspeed, "_zero", lambda *_: {})
    monkeypatch.setattr(deepspeed, "_parallel", lambda *_: {})
    job = SimpleNamespace(global_batch=8, num_micro_batches=lambda layout: 4, model=SimpleNamespace(num_layers=6))
    layout = SimpleNamespace(tp=tp, micro_batch=1, recompute="full", is_sequence_parallel=is_sequence_parallel)
    precision = SimpleNamespace(wide="bf16", is_pure=False, reduces_wide=False)
    found = deepspeed._config(job, layout, precision, SimpleNamespace())
    assert found["activation_checkpointing"] == {"partition_activations": is_shared, "number_checkpoints": 6}
    assert ("train_batch_size" in found) is (tp == 1)
    assert found["gradient_accumulation_steps"] == 4


@pytest.mark.parametrize(
    ("frac", "is_of_free", "line"), [(0.5, True, "  free_gpu_memory_fraction: 0.5"), (0.5, False, ""), (0.0, True, "")]
)
def test_tensorrt_llm_is_told_of_a_share_of_free_memory(frac, is_of_free, line):
    engine = SimpleNamespace(is_utilization_of_free=is_of_free, has_cuda_graphs=False)
    deployment = SimpleNamespace(
        engine=engine, memory_utilization_frac=frac, formats=SimpleNamespace(kv="bf16"), max_num_seqs=0
    )
    written = [text for _, text in tensorrt_llm._config(deployment, has_attention_dp=False)]
    assert ("kv_cache_config:" in written) is bool(line)
    assert (line in written) is bool(line)


@pytest.mark.parametrize(("vp", "layers"), [(1, None), (2, None), (3, "3"), (4, "2")])
def test_chunks_of_a_stage_share_its_layers(vp, layers):
    """12 layers, the embedding and the head are 14: at most 3 in each of 2 x 3 chunks, 2 in each of 2 x 4."""
    said = {}
    layout = TrainingLayout(pp=2, vp=vp, schedule="interleaved" if vp > 1 else "1f1b")
    body = SimpleNamespace(
        layout=layout, job=SimpleNamespace(model=SimpleNamespace(num_layers=12)), set=said.__setitem__
    )
    torchtitan._Body._parallelism(body)
    assert said.get("parallelism.pipeline_parallel_layers_per_stage") == layers
    assert said["parallelism.pipeline_parallel_degree"] == "2"


def test_a_reader_gets_the_tokens_of_one_over_the_time_of_each():
    speed = Plan.output_tokens_per_s_per_user.fget
    assert speed(SimpleNamespace(operation=SimpleNamespace(tpot_s=0.02))) == 50.0
    assert speed(SimpleNamespace(operation=SimpleNamespace(tpot_s=0.0))) == 0.0


def call_of(sharding, place):
    return SimpleNamespace(way=SimpleNamespace(sharding=sharding), place=place)


@pytest.mark.parametrize(
    ("home", "shardings", "moved_s"),
    [
        (-1, ("none", "none"), 0.0),  # its model is trained nowhere
        (-1, ("none", "zero3"), 0.0),
        (0, ("none", "none"), 7.0),  # from one layout to another
        (0, ("zero3", "zero3"), 0.0),
        (0, ("none", "zero3"), 9.0),  # gathered from shards, or dealt out to them
        (0, ("zero3", "none"), 9.0),
    ],
)
def test_parameters_come_from_where_their_model_is_trained(home, shardings, moved_s):
    placed = [call_of(sharding, place) for sharding, place in zip(shardings, ("a", "b"), strict=True)]
    fake = SimpleNamespace(
        home={1: home}, bytes={1: 4.0}, _moves={(4.0, "a", "b"): 7.0}, _gathered=lambda home, target, call: 9.0
    )
    assert Evaluator.moved_s(fake, placed, 1) == moved_s


def test_replicas_share_a_batch_in_whole_sequences(monkeypatch):
    """Nine sequences over two replicas are five on the fuller one, in two waves three each; evenly they are not."""
    asked = []
    run = SimpleNamespace(time_s=1.0, weights_bytes=1.0, work_bytes=1.0)

    def written(tp, pp, each, waves):
        asked.append((each, waves))
        return run

    monkeypatch.setattr(ways, "WAVES", (1, 2, 4))
    monkeypatch.setattr(ways, "Generation", lambda job, role: SimpleNamespace(run=written))
    monkeypatch.setattr(ways, "CallPlacement", lambda **given: given)
    job = SimpleNamespace(batch=9)
    assert len(ways.generate_ways(job, "actor", [(1, 2, 2)], is_even=False)) == 3
    assert asked == [(5, 1), (3, 2), (2, 4)]
    assert ways.generate_ways(job, "actor", [(1, 2, 2)]) == []
    assert ways.generate_ways(job, "actor", [(1, 6, 2)], is_even=False) == []  # fewer sequences than stages


def test_of_chains_that_end_alike_the_first_start_stays(monkeypatch):
    """The fastest stays, the first of equals; a chain that finds nothing that fits is passed by."""
    ends = {0: None, 1: 3.0, 2: 2.0, 3: 2.0}
    found = {n: s and SimpleNamespace(time_s=s, number=n) for n, s in ends.items()}
    monkeypatch.setattr(search, "Evaluator", lambda job: None)
    monkeypatch.setattr(search, "greedy", lambda space: ["greedy"])
    monkeypatch.setattr(search, "_chain", lambda space, evaluator, start, count, seed, number: found[number])
    best = search.search(SimpleNamespace(job=None), starts=(["a"], ["b"], ["c"]))
    assert best.number == 2


def test_a_nearby_layout_shares_its_parameters_among_all(monkeypatch):
    """Groups of a sharding belong to the degrees that they were chosen with."""
    family = SimpleNamespace(**{name: getattr(TrainingLayout(dp=4), name) for name in nearby.DEGREES})
    monkeypatch.setattr(nearby, "families", lambda job, fixed: [family])
    monkeypatch.setattr(nearby, "_distance_of", lambda f, layout: 0.0)
    start = TrainingLayout(dp=8, sharding="zero3", sharding_group=4, micro_batch=3)
    found = list(nearby._candidates(SimpleNamespace(global_batch=16), start, keeps_choices=True))
    assert {(one.dp, one.sharding_group, one.secondary_group, one.micro_batch) for one in found} == {(4, 0, 0, 4)}


def test_a_stage_decodes_at_least_one_sequence(monkeypatch):
    """Three sequences in two parts are one and a half in a step; one is one, not half of one."""
    asked = []

    def steps_of(*given):
        asked.append(given[3].tolist())
        raise StopIteration

    moments = SimpleNamespace(sequences=np.array([3.0, 1.0]), context_tokens=np.array([5.0, 5.0]))
    monkeypatch.setattr(generation, "steps_of", steps_of)
    fake = SimpleNamespace(
        job=SimpleNamespace(prompt_tokens=4), _deployed=lambda *_: None, _moments_of=lambda *_: moments
    )
    with pytest.raises(StopIteration):
        Generation._write(fake, 1, 2, 3, 1)
    assert asked == [[1.5, 1.0, 0.0]]

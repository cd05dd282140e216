"""Operations, their ranks and front, generation and launch commands of small stand-ins, worked out by hand."""

from dataclasses import replace
from math import e
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.execution.memory import Infeasible
from orrery.hardware.cluster import Cluster
from orrery.planner import search as search_module
from orrery.planner.bits.layer import layers_of
from orrery.planner.blocks.library import FFN_SHARES, KV_SHARES, BlockCost, Variant, _entry, _joined, variants
from orrery.planner.curve import Curve
from orrery.planner.goal import Goal, Objectives
from orrery.planner.launch import WRITERS, sglang, tensorrt_llm, vllm
from orrery.planner.launch.manifest import Manifest
from orrery.planner.rlhf import generation
from orrery.planner.search import DroppedCandidate, _explained, _front, best_budgets, curve_of, operate, ranking
from orrery.serving.workload import Traffic


def candidate(tp=2, price=3.0, dp=1, name="d", budget=0):
    device = SimpleNamespace(name=name, power_limit_w=400.0, host_power_w=100.0)
    deployment = SimpleNamespace(
        layout=Layout(tp=tp, dp=dp),
        cluster=SimpleNamespace(device=device),
        formats="bf16",
        max_num_batched_tokens=budget,
    )
    option = SimpleNamespace(tariff=SimpleNamespace(usd_per_hour=price), device=device)
    return SimpleNamespace(deployment=deployment, option=option)


def curve(**given):
    """1, e and e^2 in flight at 1, 4 and 8 requests/s."""
    usual = {"concurrency": [1.0, e, e**2], "ttft_s": [1.0, 1.0, 4.0], "tpot_s": [0.1, 0.2, 0.4]}
    usual |= {"e2el_s": [2.0, 3.0, 9.0], "requests_per_s": [1.0, 4.0, 8.0]} | given
    who = usual.pop("candidate", candidate())
    return Curve(candidate=who, memory=None, **{name: np.array(values) for name, values in usual.items()})


def goal(rate=0.0, most=8, best="cost", **limits):
    traffic = Traffic(input_tokens=30, output_tokens=10, request_rate_per_s=rate)
    return Goal(objectives=Objectives(**limits), traffic=traffic, max_devices=most, best=best)


def test_without_a_rate_all_devices_work_as_hard_as_they_may():
    found = operate(goal(), curve())
    assert (found.replicas, found.num_devices, found.concurrency) == (4, 8, pytest.approx(e**2))
    assert (found.requests_per_s, found.output_tokens_per_s) == (pytest.approx(32.0), pytest.approx(320.0))
    assert (found.ttft_s, found.tpot_s) == (pytest.approx(4.0), pytest.approx(0.4))


def test_a_single_output_token_has_no_time_between_tokens():
    two, one = (replace(goal(), traffic=Traffic(input_tokens=30, output_tokens=n)) for n in (2, 1))
    found = operate(one, curve())
    assert (found.tpot_s, found.e2el_s) == (0.0, pytest.approx(4.0))
    assert found.output_tokens_per_s == pytest.approx(32.0)
    found = operate(two, curve())
    assert (found.tpot_s, found.e2el_s) == (pytest.approx(0.4), pytest.approx(4.4))


def test_a_rate_takes_as_few_replicas_as_carry_it():
    """8/s each: 16/s take exactly two, a little more three; three of 5.33/s are between 4 and 8 on logarithms."""
    assert operate(goal(16.0), curve()).replicas == 2
    found = operate(goal(16.1), curve())
    assert found.replicas == 3
    assert found.requests_per_s == pytest.approx(16.1)
    assert found.concurrency == pytest.approx(e ** (1 + np.log(16.1 / 12) / np.log(2)))
    assert found.highest_requests_per_s == pytest.approx(24.0)
    assert found.highest_output_tokens_per_s == pytest.approx(240.0)
    spread = operate(goal(16.0), curve(), 4)
    assert (spread.replicas, spread.concurrency) == (4, pytest.approx(e))
    low = operate(goal(0.5), curve())  # half a request a second, 2 s each: latencies of the foot
    assert (low.concurrency, low.ttft_s, low.tpot_s) == (1.0, 1.0, pytest.approx(0.1))


@pytest.mark.parametrize(
    ("limits", "replicas", "what", "need"),
    [
        ({"max_usd_per_hour": 18.5}, 3, "dollars an hour", 24.0),  # 6 $ a replica of two devices
        ({"max_power_w": 2500.0}, 2, "watts", 4000.0),  # 1000 W with the machine around it
        ({"max_usd_per_hour": 18.5, "max_power_w": 2500.0}, 2, "watts", 4000.0),
    ],
)
def test_dollars_and_watts_bound_the_replicas(limits, replicas, what, need):
    assert operate(replace(goal(), **limits), curve()).replicas == replicas
    missed = operate(replace(goal(32.0), **limits), curve())
    assert missed.infeasible.what.startswith(what)
    assert missed.infeasible.need == need
    nothing = operate(replace(goal(), max_usd_per_hour=5.0), curve())
    assert nothing.infeasible.need == 6.0


def test_an_objective_lowers_what_a_replica_carries():
    found = operate(goal(4.0, tpot_s=0.2), curve())
    assert (found.replicas, found.max_concurrency) == (1, pytest.approx(e))
    slow = operate(goal(4.0, tpot_s=0.05, ttft_s=0.9), curve())
    assert isinstance(slow, DroppedCandidate)
    assert (slow.reason, slow.excess_ratio, slow.infeasible.have) == (
        "objective",
        pytest.approx(2.0),
        pytest.approx(0.1),
    )
    assert slow.infeasible.need == 0.05
    few = operate(goal(33.0), curve())
    assert (few.reason, few.infeasible.need, few.infeasible.have, few.excess_ratio) == ("devices", 10.0, 8.0, 1.25)
    assert not isinstance(operate(goal(32.0), curve()), DroppedCandidate)


def test_people_that_think_between_requests():
    """A replica has room for e^2 in flight and 8/s x 2 s of thinking."""
    traffic = Traffic(input_tokens=30, output_tokens=10, num_users=40, think_s=2.0)
    people = Goal(objectives=Objectives(), traffic=traffic, max_devices=8)
    found = operate(people, curve())
    assert found.replicas == 2  # 23.4 people each
    assert found.requests_per_s == pytest.approx(2 * (20 - found.concurrency) / 2.0)
    assert e < found.concurrency < e**2


def ranked(price, devices, tokens):
    option = SimpleNamespace(tariff=SimpleNamespace(usd_per_hour=price))
    return SimpleNamespace(
        candidate=SimpleNamespace(option=option), num_devices=devices, highest_output_tokens_per_s=tokens
    )


def test_the_order_of_plans():
    by_cost = ranking(goal(4.0))
    assert by_cost(ranked(3.0, 4, 80.0)) == (0.0, 12.0, -20.0)
    assert by_cost(ranked(None, 4, 80.0)) == (1.0, 4.0, -20.0)
    for other in (goal(4.0, best="throughput"), goal()):
        assert ranking(other)(ranked(3.0, 4, 80.0)) == (-20.0, 4.0)
    same = [candidate(budget=1), candidate(budget=2), candidate(tp=1), candidate(name="e")]
    assert list(best_budgets(same)) == [same[0], same[2], same[3]]


def test_the_front_of_all_rungs():
    """Users see 10, 5 and 2.5 tokens/s; two devices carry 5, 20 and 40 each."""
    points = _front(goal(tpot_s=0.2), [curve(), curve(requests_per_s=[0.9, 3.0, 9.0])])
    assert [p.output_tokens_per_s_per_user for p in points] == pytest.approx([10.0, 5.0, 2.5])
    assert [p.output_tokens_per_s_per_device for p in points] == pytest.approx([5.0, 20.0, 45.0])
    assert [p.meets_objectives for p in points] == [True, True, False]
    assert [p.concurrency for p in points] == pytest.approx([1.0, e, e**2])
    short = replace(goal(), traffic=replace(goal().traffic, output_tokens=2))
    assert len(_front(short, [curve()])) == 3
    assert _front(replace(goal(), traffic=replace(goal().traffic, output_tokens=1)), [curve()]) == ()
    assert _front(goal(), []) == ()


def test_what_keeps_a_candidate_from_running(monkeypatch):
    ladders = []
    monkeypatch.setattr(search_module, "swept", lambda goal, candidate, memory, ladder: ladders.append(ladder))
    full = Infeasible(what="weights", need=3.0, have=2.0, unit="bytes", smallest_change="")
    monkeypatch.setattr(search_module, "memory_of", lambda deployment: full)
    assert (curve_of(goal(), candidate()).reason, curve_of(goal(), candidate()).excess_ratio) == ("memory", 1.5)
    room = SimpleNamespace(kv_capacity_tokens=20)
    monkeypatch.setattr(search_module, "memory_of", lambda deployment: room)
    missed = curve_of(goal(), candidate())
    assert (missed.reason, missed.excess_ratio, missed.infeasible.need) == ("length", 2.0, 40)
    room.kv_capacity_tokens = 40
    monkeypatch.setattr(search_module, "batch_limit", lambda *_: 64.0)
    curve_of(goal(), candidate(dp=2))
    assert (ladders[0][0], ladders[0][-1], ladders[0].size) == (2.0, pytest.approx(128.0), 16)
    monkeypatch.setattr(search_module, "batch_limit", lambda *_: 1.0)
    curve_of(goal(), candidate())
    assert ladders[1].tolist() == [1.0]


def test_the_nearest_miss_of_each_layout_is_told(monkeypatch):
    monkeypatch.setattr(search_module, "explain", lambda goal, who, reason, infeasible, plans, others: len(others))

    def miss(who, reason, ratio):
        return DroppedCandidate(candidate=who, reason=reason, infeasible=None, excess_ratio=ratio)

    plans = [SimpleNamespace(candidate=candidate(tp=8))]
    misses = [miss(candidate(tp=8), "objective", 1.1), miss(candidate(tp=1), "memory", 3.0)]
    misses += [miss(candidate(tp=1, budget=9), "memory", 2.0), miss(candidate(tp=2), "devices", 1.5)]
    found = list(_explained(goal(), misses, plans))
    assert [(r.candidate.deployment.layout.tp, r.excess_ratio, r.infeasible) for r in found] == [
        (2, 1.5, 1),
        (1, 2.0, 1),
    ]


@pytest.fixture
def steps(monkeypatch):
    """A decode step of n sequences in context c takes n + c / 100 s, a prompt pass 7 s and 3 s on its slowest stage."""
    asked = []

    def tick(deployment, given):
        prompts, lengths, _, decoding, context = given
        asked.append((prompts.tolist(), lengths.tolist(), decoding.tolist()))
        time_s = np.where(decoding > 0, decoding + context / 100, 7.0)
        return SimpleNamespace(time_s=time_s, stage_s=np.where(decoding > 0, time_s / 4, 3.0))

    monkeypatch.setattr(generation, "tick", tick)
    monkeypatch.setattr(generation, "steps_of", lambda *columns: columns)
    monkeypatch.setattr(generation, "cache_of", lambda d: SimpleNamespace(sequence_bytes=lambda n: 2.0 * n))
    monkeypatch.setattr(generation, "shard", lambda d: SimpleNamespace(weight_bytes=1000.0))
    monkeypatch.setattr(generation, "activation_bytes", lambda d: 30.0)
    monkeypatch.setattr(generation, "communication_bytes", lambda d: 5.0)
    monkeypatch.setattr(
        generation.Generation, "_deployed", lambda *_: SimpleNamespace(engine=SimpleNamespace(context_bytes=700.0))
    )
    return asked


def test_writing_answers_by_hand(steps):
    """16 prompts of 1024 tokens go eight at a time: 7 s and 3 s for the others. Contexts from 1025 to 1035 mean 1030:
    ten steps of 16 + 10.3 s."""
    job = SimpleNamespace(prompt_tokens=1024, output_tokens=11, seq_len=1035, responses=())
    written = generation.Generation(job, "actor").run(1, 1, 16)
    assert steps[0] == ([0, 0, 0, 8], [0, 0, 0, 1024], [16, 16, 16, 0])
    assert written.step_s == pytest.approx(26.3)
    assert written.time_s == pytest.approx(7 + 3 + 263)
    assert (written.weights_bytes, written.work_bytes) == (1000.0, 16 * 2070.0 + 735.0)
    piped = generation.Generation(job, "actor").run(1, 8, 16)
    # two at a time: a stage is a quarter of 2 + 10.3, and eight of them are longer than one step
    assert steps[1][2] == [2, 2, 2, 0]
    assert piped.step_s == pytest.approx(2 * 12.3)
    assert piped.time_s == pytest.approx(7 + 7 * 3 + 10 * 24.6)
    one = generation.Generation(
        SimpleNamespace(prompt_tokens=9000, output_tokens=1, seq_len=9001, responses=()), "actor"
    )
    assert one.run(1, 1, 2).time_s == pytest.approx(7 + 3)
    assert steps[2][0] == [0, 0, 0, 1]


def test_variants_of_a_layer():
    assert FFN_SHARES == (1.0, 0.87, 0.75, 0.5, 0.25, 0.2, 0.1, 0.0)
    assert KV_SHARES[0] == 1.0
    assert KV_SHARES[-1] == 0.0
    assert list(KV_SHARES) == sorted(set(KV_SHARES), reverse=True)
    assert len(variants()) == len(KV_SHARES) * 8
    assert Variant(kv_share_frac=0.5, ffn_share_frac=0.25).damage_ratio == 0.25 + 0.5625
    mixer = SimpleNamespace(num_kv_heads=8, num_heads=32)
    assert _entry(Variant(kv_share_frac=0.5, ffn_share_frac=0.25), mixer, 6.0) == {
        "attention": {"n_heads_in_group": 8},
        "ffn": {"ffn_mult": 1.5},
    }
    assert _entry(Variant(kv_share_frac=0.0, ffn_share_frac=0.0), mixer, 6.0) == {
        "attention": {"no_op": True},
        "ffn": {"no_op": True},
    }

    def cost(parameters, cache, seconds):
        given = {"num_parameters": parameters, "weight_bytes": 2 * parameters, "cache_bytes": cache, "step_s": seconds}
        return BlockCost(variant=None, **given)

    both = _joined(None, cost(10.0, 3.0, 5.0), cost(20.0, 0.0, 7.0), cost(4.0, 0.0, 2.0))
    assert (both.num_parameters, both.weight_bytes, both.cache_bytes, both.step_s) == (22.0, 44.0, 3.0, 8.0)


def test_products_of_a_model_with_groups():
    """DeepSeek-V4's first output projection is cut into groups: a batch of smaller products."""
    layers = {x.name: x for x in layers_of(get_model("deepseek-v4-flash"), tokens=16)}
    name = next(n for n in layers if n.endswith("out_a"))
    linear = next(x for b in get_model("deepseek-v4-flash").blocks for x in b.linears if x.name == "out_a")
    work = layers[name].work
    assert (work.m, work.batch) == (16, linear.groups)
    assert work.n * work.k * work.batch == linear.num_parameters
    assert (type(work.n), type(work.k), linear.groups) == (int, int, 8)


class EveryFlag(Manifest):
    def first(self, *flags):
        return flags[0]


EVERY = EveryFlag(engine="x", version="1", flags=frozenset(), config_keys=frozenset(), source="")
DEVICE = get_device("h200-sxm")


def deployment(layout, model="llama-3.1-70b", weights="bf16", kv="bf16", **more):
    return Deployment(
        model=get_model(model),
        cluster=Cluster(device=DEVICE, num_devices=layout.num_devices, devices_per_node=8),
        layout=layout,
        formats=Formats(weights=weights, activations="bf16", kv=kv),
        engine=get_engine("vllm", "", DEVICE),
        **more,
    )


@pytest.fixture
def flags(monkeypatch):
    """What an engine is started with, one flag a line, where 5000 tokens fit and SGLang holds 0.8765 of the memory."""
    for module in (vllm, sglang, tensorrt_llm):
        monkeypatch.setattr(module, "context_tokens", lambda deployment, longest: 5000)
    memory = SimpleNamespace(weights_bytes=5.0, kv_capacity_bytes=2.0, capacity_bytes=8.0)
    monkeypatch.setattr(sglang, "memory_of", lambda deployment: memory)
    monkeypatch.setattr(sglang, "Memory", SimpleNamespace)

    def written(engine, *given, **more):
        found = WRITERS[engine](deployment(*given, **more), EVERY, 5000.0)
        return found, [line.strip(" \\") for line in found.text.splitlines()]

    return written


def test_a_command_that_is_told_no_longest_request_lets_in_what_fits(monkeypatch):
    told = []
    for module in (vllm, sglang, tensorrt_llm):
        monkeypatch.setattr(module, "context_tokens", lambda deployment, longest: told.append(longest) or 0)
    for write in WRITERS.values():
        assert "5000" not in write(deployment(Layout(tp=1)), EVERY).text
    assert told == [0.0] * len(WRITERS)


def test_a_command_of_vllm(flags):
    _, lines = flags("vllm", Layout(tp=4, pp=2), weights="fp8", kv="fp8", max_num_seqs=64, max_num_batched_tokens=512)
    assert lines[1:] == [
        "--tensor-parallel-size 4",
        "--pipeline-parallel-size 2",
        "--quantization fp8",
        "--kv-cache-dtype fp8",
        "--max-model-len 5000",
        "--max-num-seqs 64",
        "--max-num-batched-tokens 512",
        "--gpu-memory-utilization 0.9",
    ]
    _, lines = flags("vllm", Layout(tp=1, cp=2), memory_utilization_frac=0.5)
    assert lines[1:] == [
        "--prefill-context-parallel-size 2",
        "--max-model-len 5000",
        "--gpu-memory-utilization 0.5",
    ]
    found, lines = flags("vllm", Layout(tp=2, dp=2, ep=4), "qwen3-30b-a3b", weights="int4_weight_only")
    assert lines[1:4] == ["--tensor-parallel-size 2", "--data-parallel-size 2", "--enable-expert-parallel"]
    assert "needs a checkpoint in int4_weight_only" in found.notes[-1]


def test_a_command_of_sglang(flags):
    _, lines = flags("sglang", Layout(tp=4, pp=2), kv="fp8", max_num_seqs=64, scheduler_recv_interval=2)
    assert lines[1:] == [
        "--tp-size 4",
        "--pp-size 2",
        "--kv-cache-dtype fp8_e4m3",
        "--context-length 5000",
        "--max-running-requests 64",
        "--scheduler-recv-interval 2",
        "--mem-fraction-static 0.875",
    ]
    _, lines = flags("sglang", Layout(tp=1, cp=2), max_num_batched_tokens=512, scheduler_recv_interval=1)
    assert lines[1:] == [
        "--attn-cp-size 2",
        "--context-length 5000",
        "--chunked-prefill-size 512",
        "--mem-fraction-static 0.875",
    ]
    _, lines = flags("sglang", Layout(tp=1, dp=2), max_num_seqs=8)
    assert lines[1:4] == ["--dp-size 2", "--context-length 5000", "--max-running-requests 16"]
    _, lines = flags("sglang", Layout(tp=2, dp=2, ep=4), "qwen3-30b-a3b")
    assert lines[1:4] == ["--tp-size 4", "--attn-dp-size 2", "--ep-size 4"]


def test_the_static_share_of_sglang(monkeypatch):
    given = deployment(Layout(tp=4))
    memory = SimpleNamespace(weights_bytes=5.0, kv_capacity_bytes=2.9, capacity_bytes=8.0)
    monkeypatch.setattr(sglang, "Memory", SimpleNamespace)
    monkeypatch.setattr(sglang, "memory_of", lambda deployment: memory)
    assert sglang.static_frac(given) == 0.95
    monkeypatch.setattr(sglang, "memory_of", lambda deployment: None)
    assert sglang.static_frac(given) == 0.0


def test_a_command_of_tensorrt_llm(flags):
    given = {"max_num_seqs": 64, "max_num_batched_tokens": 512}
    found, lines = flags("tensorrt-llm", Layout(tp=4, pp=2, cp=2), kv="fp8", **given)
    assert lines == [
        "cat > trtllm.yaml <<'EOF'",
        "cuda_graph_config:",
        "enable_padding: true",
        "max_batch_size: 64",
        "enable_chunked_prefill: true",
        "kv_cache_config:",
        "dtype: fp8",
        "EOF",
        "trtllm-serve meta-llama/Llama-3.1-70B",
        "--tp_size 4",
        "--pp_size 2",
        "--cp_size 2",
        "--max_batch_size 64",
        "--max_num_tokens 512",
        "--max_seq_len 5000",
        "--config trtllm.yaml",
    ]
    assert found.notes == ()
    spread, lines = flags("tensorrt-llm", Layout(tp=2, dp=2, ep=4), "qwen3-30b-a3b", weights="fp8")
    assert "enable_attention_dp: true" in lines
    assert lines[lines.index("EOF") + 2 : -2] == ["--tp_size 4", "--ep_size 4"]
    assert "all 4 ranks; the plan's 2 groups of 2" in spread.notes[1]
    flat, _ = flags("tensorrt-llm", Layout(tp=1, dp=2, ep=2), "qwen3-30b-a3b")
    assert not any("groups" in note for note in flat.notes)

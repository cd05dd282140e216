"""From an operation to a plan and to commands, with parts that say round numbers."""

from dataclasses import dataclass, replace
from math import inf
from types import SimpleNamespace

import numpy as np
import pytest
from training_launches import case

from orrery.base.cost import Interval
from orrery.execution.memory import Infeasible
from orrery.planner import detail, launch, pools, search
from orrery.planner.architecture import together
from orrery.planner.bits import sensitivity
from orrery.planner.launch import command
from orrery.planner.launch.training import scripts
from orrery.planner.money import Tariff
from orrery.planner.rlhf import search as rlhf_search
from orrery.planner.rlhf.ways import micro_batches

TARIFF = Tariff(usd_per_hour=3.6, electricity_usd_per_kwh=0.0, because="a test")
INTERVAL = Interval(low_80=8.0, high_80=12.0, low_95=6.0, high_95=16.0, because="a test")


@dataclass(frozen=True)
class Deployed:
    """A deployment of which a plan reads a few fields."""

    max_num_seqs: int = 0
    dp: int = 1
    weights: str = "bf16"
    kv: str = "bf16"
    expert_placement: str = ""

    @property
    def layout(self):
        return SimpleNamespace(dp=self.dp, num_devices=16, pp=2)

    @property
    def formats(self):
        return SimpleNamespace(weights=self.weights, kv=self.kv)

    @property
    def model(self):
        return SimpleNamespace(weights_format="bf16", max_context_tokens=4096)


def operation(**given):
    """Two replicas that answer 4 requests/s of the 16 that they sustain, with 40 output tokens/s."""
    plain = {
        "deployment": Deployed(),
        "replicas": 2,
        "requests_per_s": 4.0,
        "highest_requests_per_s": 16.0,
        "output_tokens_per_s": 40.0,
        "concurrency": 2.6,
        "max_concurrency": 9.0,
        "num_devices": 4,
        "ttft_s": 0.5,
        "tpot_s": 0.02,
        "memory": SimpleNamespace(max_num_seqs=64),
        "candidate": SimpleNamespace(option=SimpleNamespace(tariff=TARIFF, clock_frac=0.5)),
    }
    return SimpleNamespace(**(plain | given))


TRAFFIC = SimpleNamespace(
    input_tokens=90.0,
    output_tokens=10.0,
    request_rate_per_s=4.0,
    longest_tokens=0.0,
    open=lambda rate: ("open", rate),
    closed=lambda together, count: ("closed", together, count),
)
GOAL = SimpleNamespace(traffic=TRAFFIC, best="energy")
FOUND = SimpleNamespace(
    power_w=100.0,
    host_power_w=20.0,
    bound_by="memory",
    notes=("as found",),
    intervals={"ttft_s": INTERVAL},
    ttft_s=10.0,
)


def test_a_plan_is_its_replica_s_estimate_times_the_replicas(monkeypatch):
    """200 W and 40 W of hosts for 40 tokens/s; 4 devices of $3.6 an hour; 400 tokens/s, prompts counted."""
    monkeypatch.setattr(detail, "estimate", lambda *_: FOUND)
    monkeypatch.setattr(detail, "launch", lambda *_, **__: ({"vllm": "serve"}, ("start it",)))
    monkeypatch.setattr(detail, "limited", lambda one: one.deployment)
    plan = detail.detail(GOAL, operation())
    assert (plan.power_w, plan.host_power_w, plan.energy_j_per_token) == (200.0, 40.0, 5.0)
    assert plan.energy_j_per_token_with_host == 6.0
    assert (plan.output_tokens_per_s, plan.total_tokens_per_s) == (40.0, 400.0)
    assert plan.usd_per_hour == pytest.approx(14.4)
    assert plan.usd_per_million_tokens == pytest.approx(4 * 1e-3 / 40 * 1e6)
    assert plan.usd_per_million_total_tokens == pytest.approx(4 * 1e-3 / 400 * 1e6)
    assert plan.notes[0] == "as found"
    assert plan.notes[1].startswith("clock: 50 % of the full one")
    assert (
        "25 % of the rate that it sustains is used; at that rate a token would cost about 0.25 times" in plan.notes[2]
    )
    assert plan.launch == {"vllm": "serve"}
    assert plan.intervals["ttft_s"].high_80 == pytest.approx(12.0 * 0.5 / 10.0)  # around the operation's own 0.5 s
    assert plan.intervals.keys() == {"ttft_s"}
    full = operation(
        highest_requests_per_s=4.0, candidate=SimpleNamespace(option=SimpleNamespace(tariff=TARIFF, clock_frac=1.0))
    )
    assert detail.detail(GOAL, full).notes == ("as found",)


def test_the_traffic_of_one_replica():
    """Its share of the arrivals below the highest rate, a full closed loop at it or where none is demanded."""
    assert detail.workload_of(GOAL, operation()) == ("open", 2.0)
    assert detail.workload_of(GOAL, operation(highest_requests_per_s=4.0)) == ("closed", 3, 3000)
    endless = SimpleNamespace(traffic=SimpleNamespace(**{**vars(TRAFFIC), "request_rate_per_s": 0.0}))
    assert detail.workload_of(endless, operation(concurrency=0.2)) == ("closed", 1, 1000)


def test_a_batch_limit_is_of_a_rank():
    assert detail.limited(operation()).max_num_seqs == 9
    assert detail.limited(operation(deployment=Deployed(dp=4))).max_num_seqs == 2
    assert detail.limited(operation(max_concurrency=0.5)).max_num_seqs == 1
    assert detail.limited(operation(max_concurrency=900.0)).max_num_seqs == 64


def test_what_changes_answers_is_said():
    assert detail.quality_notes(operation()) == ()
    narrow = detail.quality_notes(operation(deployment=Deployed(weights="fp8", kv="fp8")))
    assert [note.split(",")[0] for note in narrow] == [
        "weights in fp8",
        "cache in fp8: measure what that does to long answers",
    ]


def test_energy_of_a_plan_that_is_ranked_by_it(monkeypatch):
    @dataclass(frozen=True)
    class Ranked:
        replicas: int = 2
        output_tokens_per_s: float = 40.0
        energy_j_per_token: float = 0.0
        deployment: object = None

    monkeypatch.setattr(search, "estimate", lambda *_: FOUND)
    monkeypatch.setattr(search, "workload_of", lambda *_: None)
    assert search._valued(GOAL, Ranked()).energy_j_per_token == 6.0
    assert search._valued(SimpleNamespace(best="cost"), Ranked()).energy_j_per_token == 0.0


# --- commands


def launched(monkeypatch, *, versions=None, nodes=1, head=None, replicas=1):
    asked = []
    monkeypatch.setattr(launch, "manifest_for", lambda engine, version: SimpleNamespace(version=version or "newest"))

    def write(deployment, manifest, longest_tokens):
        asked.append((manifest.version, longest_tokens))
        return SimpleNamespace(text="run", notes=("look",))

    monkeypatch.setattr(launch, "WRITERS", {"vllm": write, "sglang": write})
    deployment = SimpleNamespace(
        engine=SimpleNamespace(name="vllm", version="0.9"),
        layout=SimpleNamespace(num_devices=8 * nodes),
        cluster=SimpleNamespace(devices_per_node=8),
        draft_head=head,
    )
    commands, notes = launch.launch(deployment, longest_tokens=7.0, replicas=replicas, versions=versions)
    assert commands == {"vllm": "run", "sglang": "run"}
    assert {tokens for _, tokens in asked} == {7.0}
    return [version for version, _ in asked], notes


def test_a_command_is_of_the_version_that_is_named_or_deployed(monkeypatch):
    assert launched(monkeypatch) == (["0.9", "newest"], ("vllm 0.9: look", "sglang newest: look"))
    assert launched(monkeypatch, versions={"vllm": "0.11", "sglang": "0.4"})[0] == ["0.11", "0.4"]
    assert launched(monkeypatch, versions={"sglang": "0.4"})[0] == ["0.9", "0.4"]


def test_what_to_know_of_several_nodes_replicas_and_heads(monkeypatch):
    assert "one replica spans 2 nodes" in launched(monkeypatch, nodes=2)[1][2]
    assert launched(monkeypatch, replicas=3)[1][2] == "start 3 of these behind a load balancer; each is one replica"
    assert "only the command of vLLM" in launched(monkeypatch, head=SimpleNamespace(method="mtp"))[1][2]
    assert "tree of draft tokens" in launched(monkeypatch, head=SimpleNamespace(method="tree"))[1][2]


@pytest.mark.parametrize(
    ("own", "room", "longest", "tokens"),
    [
        (0, 3000.7, 0.0, 3000),  # what the cache holds
        (0, 9000.0, 0.0, 4096),  # what the model reads
        (0, 9000.0, 1025.0, 2048),  # the longest request, in whole steps
        (0, 9000.0, 1024.0, 1024),
        (0, 1.0, 0.0, 1),
        (0, 0.5, 0.0, 0),
        (512, 9000.0, 0.0, 512),  # as the user says
        (0, None, 0.0, 0),
    ],
)
def test_the_longest_sequence_that_is_let_in(monkeypatch, own, room, longest, tokens):
    class Kept:
        kv_capacity_tokens = room

    monkeypatch.setattr(command, "Memory", Kept)
    monkeypatch.setattr(command, "memory_of", lambda _: Kept() if room else "infeasible")
    deployment = SimpleNamespace(max_model_tokens=own, model=SimpleNamespace(max_context_tokens=4096))
    assert command.context_tokens(deployment, longest) == tokens
    Kept.kv_capacity_tokens = inf  # a state that does not grow, of a model without a limit
    endless = SimpleNamespace(max_model_tokens=0, model=SimpleNamespace(max_context_tokens=None))
    assert command.context_tokens(endless, 0.0) == 0


@pytest.mark.parametrize(
    ("change", "overlaps", "flags"),
    [
        ({"tp": 2, "dp": 2}, True, {"--tp-comm-overlap"}),
        ({"tp": 2, "dp": 2, "is_sequence_parallel": False}, True, set()),
        ({"tp": 1, "dp": 2}, True, set()),
        ({"tp": 2, "dp": 2}, False, set()),
        ({"pp": 4, "vp": 2, "dp": 2}, False, {"--no-overlap-p2p-communication"}),
        ({"pp": 2, "vp": 2, "dp": 2}, False, set()),
        ({"pp": 4, "vp": 2, "dp": 2}, True, set()),
        ({"pp": 4, "vp": 1, "dp": 2}, False, set()),
    ],
)
def test_flags_of_overlap(change, overlaps, flags):
    plain, layout = case("one device")
    layout = replace(layout, **change)
    framework = replace(plain.framework, overlaps_tensor=overlaps, overlaps_pipeline=overlaps)
    job = replace(plain, framework=framework, cluster=replace(plain.cluster, num_devices=layout.num_devices))
    found = scripts(job, layout)
    known = {"--tp-comm-overlap", "--no-overlap-p2p-communication"}
    assert known & set(found["megatron-lm"].flags) == flags
    bridge = "\n".join(found["megatron-bridge"].arguments)
    assert ("model.tp_comm_overlap=true" in bridge) == ("--tp-comm-overlap" in flags)
    assert ("model.overlap_p2p_comm=true" in bridge) == (overlaps and layout.vp > 1)
    assert ("model.batch_p2p_comm=false" in bridge) == (overlaps and layout.vp > 1)


# --- pools, formats and searches


def test_requests_of_a_pool_that_only_decodes(monkeypatch):
    """n sequences take n hundredths of a second a token, of 11: n / (10 x n / 100) = 10/s each, 30/s on three ranks;
    above 4 of them a token is too late."""
    deployment = Deployed(dp=3)
    steps = SimpleNamespace(deployment=deployment, memory=None, output_steps=11.0, tokens_per_step=1.0)
    monkeypatch.setattr(pools, "drafted", lambda *_: steps)
    monkeypatch.setattr(pools, "batch_limit", lambda *_: 16.0)
    seen = []

    def step_s(deployment, sequences, context):
        seen.append((sequences.max(), context))
        return 0.001 + sequences / 100

    monkeypatch.setattr(pools, "_decode_step_s", step_s)
    most = max(n for n in np.unique(np.rint(np.geomspace(1, 16, pools.RUNGS))) if 0.001 + n / 100 <= 0.05)
    assert pools.decode_rate(deployment, None, 100.0, 11.0, 0.05) == pytest.approx(
        3 * most / (10 * (0.001 + most / 100))
    )
    assert seen == [(16.0, 105.5)]
    assert pools.decode_rate(deployment, None, 100.0, 11.0, 0.005) == 0.0
    steps.tokens_per_step = 2.0  # a token every half step
    twice = pools.decode_rate(deployment, None, 100.0, 11.0, 1.0)
    steps.tokens_per_step = 1.0
    assert twice == pytest.approx(2 * pools.decode_rate(deployment, None, 100.0, 11.0, 1.0))


def test_a_pipeline_decodes_a_batch_a_stage(monkeypatch):
    monkeypatch.setattr(pools, "steps_of", lambda *columns: columns)
    monkeypatch.setattr(pools, "tick", lambda deployment, steps: SimpleNamespace(time_s=steps))
    *prompts, each, context = pools._decode_step_s(Deployed(), np.array([1.0, 2.0, 8.0]), 50.0)
    assert (prompts, each.tolist(), context) == ([0.0, 0.0, 0.0], [1.0, 1.0, 4.0], 50.0)


def test_a_relative_error_by_hand(monkeypatch):
    """3 and 4 rounded to 3 and 3: 1 of 25."""
    monkeypatch.setattr(sensitivity, "round_trip", lambda values, format: np.minimum(values, 3.0))
    assert sensitivity.relative_error(np.array([3.0, 4.0], np.float32), "any") == pytest.approx(1 / 25)
    assert sensitivity.relative_error(np.zeros(4, np.float32), "any") == 0.0


def test_micro_batches_divide_a_replica_s_sequences():
    assert [micro_batches(n, dp) for n, dp in ((24, 2), (6, 3), (16, 1), (7, 2))] == [
        [1, 2, 4],
        [1, 2],
        [1, 2, 4, 8],
        [],
    ]


def test_proposals_of_a_chain_lie_on_the_cluster(monkeypatch):
    """Meshes of 2 or 4 of 8 devices begin at multiples of their size; the least of all that fit is kept."""
    tried = []

    def cost(evaluator, placed):
        (one,) = placed
        tried.append((one.mesh.first, one.mesh.num_devices))
        return 10.0 - one.mesh.first - one.mesh.num_devices, True

    monkeypatch.setattr(rlhf_search, "_cost", cost)
    job = SimpleNamespace(cluster=SimpleNamespace(num_devices=8))
    ways = ({2: ("two",), 4: ("four",)},)
    evaluator = SimpleNamespace(plan=lambda placed: placed[0].mesh)
    start = [rlhf_search.Placed(mesh=rlhf_search.Mesh(first=0, num_devices=2), way="two")]
    best = rlhf_search._chain(rlhf_search.Space(job=job, ways=ways), evaluator, start, 200, 0, 0)
    assert set(tried) == {(0, 2), (2, 2), (4, 2), (6, 2), (0, 4), (4, 4)}
    assert best.end == 8


def test_the_slope_of_what_passes_a_limit():
    """Expected 2 x (0.25 x 1 + 0.75 x 5) = 8 with the constant of 0 against 4: slopes 1/4 and 5/4 around their mean."""
    problem = SimpleNamespace(metrics={"latency": SimpleNamespace(table=np.array([[1.0, 5.0]] * 2), constant=0.0)})
    shares = np.array([[0.25, 0.75]] * 2)
    found = together._passing(problem, shares, {"latency": 4.0})
    assert found[0] == pytest.approx([0.25 * (0.25 - 1.0), 0.75 * (1.25 - 1.0)])
    assert together._passing(problem, shares, {"latency": 8.0}).tolist() == [[0.0, 0.0]] * 2
    assert together._passing(problem, shares, {"latency": 0.0})[0] == pytest.approx([0.25 * -3.0, 0.75 * 1.0])


def test_an_infeasible_plan_is_a_mistake_of_the_search(monkeypatch):
    full = Infeasible(what="m", need=2.0, have=1.0, unit="bytes", smallest_change="less")
    monkeypatch.setattr(detail, "estimate", lambda *_: full)
    with pytest.raises(AssertionError, match="stopped fitting"):
        detail.detail(GOAL, operation())

"""Training from settings: answers, the whole run, and every refusal names numbers and a way out."""

import json

import pytest

import orrery
from orrery.base.errors import OrreryError, ScenarioError
from orrery.scenario.ask import InfeasibleAnswer

SMALL = {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 8, "global_batch": 64, "seq_len": 4096}
FITS = SMALL | {"framework": "torchtitan"}


def test_an_answer_has_what_scripts_rely_on():
    out = orrery.train(**FITS).to_json()
    json.dumps(out, allow_nan=False)
    for key in ("step_time_s", "mfu_frac", "tokens_per_s_per_device", "peak_memory_bytes"):
        assert out[key] > 0
    assert out["tokens_per_s_per_device"] == pytest.approx(64 * 4096 / out["step_time_s"] / 8)
    assert sum(out["parts"].values()) == pytest.approx(out["step_time_s"])
    assert out["layout"]["sharding"] == "zero3"
    assert out["intervals"]["step_time_s"]["low_80"] < out["step_time_s"] < out["intervals"]["step_time_s"]["high_80"]
    assert any(n.startswith("dp: 8") for n in out["notes"])


def test_money_and_energy_follow_from_the_step():
    answer = orrery.train(**FITS, usd_per_hour=3.6, electricity=0.1)
    hours = answer.step_time_s / 3600
    energy_usd = answer.energy_j_per_step / 3.6e6 * 0.1
    assert answer.usd_per_million_tokens == pytest.approx((8 * 3.6 * hours + energy_usd) / (64 * 4096) * 1e6)
    assert answer.energy_j_per_token == pytest.approx(answer.energy_j_per_step / (64 * 4096))


def test_a_run_without_failures_is_steps_times_time():
    run = orrery.train(**FITS, train_tokens=1e10).run
    answer = orrery.train(**FITS)
    assert run.num_steps == -(-(10**10) // (64 * 4096))
    assert run.days == pytest.approx(run.num_steps * answer.step_time_s / 86400)
    assert run.goodput is None


def test_failures_cost_goodput_and_lazy_checkpoints_less_than_blocking_ones():
    found = {
        way: orrery.train(**FITS, train_tokens=1e12, device_mtbf_s=1e7, checkpoint=way).run
        for way in ("blocking", "snapshot", "lazy", "in-memory")
    }
    for run in found.values():
        g = run.goodput
        assert g.useful_frac + g.checkpoint_frac + g.lost_frac + g.recovery_frac == pytest.approx(1)
        assert 0.5 < g.useful_frac < 1
    assert found["lazy"].goodput.useful_frac >= found["blocking"].goodput.useful_frac
    assert found["lazy"].checkpoint_blocked_s < found["blocking"].checkpoint_blocked_s
    rare = orrery.train(**FITS, train_tokens=1e12, device_mtbf_s=1e9).run
    assert rare.goodput.useful_frac > found["snapshot"].goodput.useful_frac
    assert rare.checkpoint_interval_s > found["snapshot"].checkpoint_interval_s


def test_what_does_not_fit_is_a_result_with_a_way_out():
    answer = orrery.train(**(SMALL | {"seq_len": 8192}), framework="megatron-lm", micro_batch=8)
    assert isinstance(answer, InfeasibleAnswer)
    infeasible = answer.infeasible
    assert infeasible.need > infeasible.have
    assert "fits" in infeasible.smallest_change
    changed = dict(p.split(" = ") for p in infeasible.smallest_change.removesuffix(" fits.").split(", "))
    numbers = {k: int(v) if v.isdigit() else v for k, v in changed.items()}
    again = orrery.train(**(SMALL | {"seq_len": 8192, "micro_batch": 8} | numbers), framework="megatron-lm")
    assert not isinstance(again, InfeasibleAnswer), infeasible.smallest_change


WRONG = [
    ({"tp": 3}, "multiple of 3"),
    ({"tp": 2, "pp": 2, "dp": 4}, "devices"),
    ({"ep": 4}, "leave ep"),
    ({"micro_batch": 3}, "global_batch"),
    ({"sharding": "zero4"}, "zero3"),
    ({"recompute": "some"}, "none"),
    ({"schedule": "1b1f", "pp": 2}, "1f1b"),
    ({"framework": "megatorn-lm"}, "megatron-lm"),
    ({"precision": "fp9"}, "fp8"),
    ({"task": "rlhf"}, "pretrain"),
    ({"checkpoint": "lazzy", "train_tokens": 1e9, "device_mtbf_s": 1e8}, "lazy"),
    ({"checkpoint": "lazy"}, "train_tokens"),
    ({"island_devices": 4}, "island_link_bytes_per_s"),
    ({"island_devices": 3, "island_link_bytes_per_s": 1e9}, "divisor"),
    ({"global_batch": None}, "global_batch"),
    ({"devices": None}, "devices"),
    ({"device": "h100-sxm,a100-sxm-80gb"}, "one"),
    ({"tensor_overlap": "dominoes", "tp": 2}, "domino"),
    ({"pp": 64, "devices": 64}, "stages"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[str(c) for c, _ in WRONG])
def test_wrong_input_names_what_and_a_way_out(change, message):
    with pytest.raises(OrreryError, match="(?s)" + message):
        orrery.train(**{k: v for k, v in (FITS | change).items() if v is not None})


def test_the_nearest_layout_is_named():
    with pytest.raises(ScenarioError, match=r"The nearest layout that works: tp\d"):
        orrery.train(**FITS, tp=8, dp=1, micro_batch=5)


def test_a_plan_is_at_least_as_fast_as_a_guess():
    job = {"model": "gpt3-13b", "device": "a100-sxm-80gb", "devices": 16, "global_batch": 64, "seq_len": 2048}
    guess = orrery.train(**job, tp=2, dp=8, sharding="zero1", recompute="full", framework="megatron-lm")
    found = orrery.train_plan(**job, framework="megatron-lm", schedule="1f1b")
    assert found.plans[0].step_time_s <= guess.step_time_s
    out = found.to_json()
    json.dumps(out, allow_nan=False)
    assert out["evaluated"] + out["ruled_out"] <= out["num_layouts"]
    assert "pretrain_gpt.py" in out["launch"]["megatron-lm"]
    assert out["seconds"] > 0
    again = orrery.train(
        **job,
        framework="megatron-lm",
        **{
            k: v
            for k, v in out["plans"][0]["layout"].items()
            if k not in ("is_sequence_parallel", "sharding_group", "secondary_group")
            and not k.startswith("recompute_")
            and not k.endswith("_stage_layers")
        },
        sequence_parallel=out["plans"][0]["layout"]["is_sequence_parallel"],
    )
    assert again.step_time_s == pytest.approx(found.plans[0].step_time_s, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"secondary_group": 4}, "leave secondary_group or --plan out"),
        ({"ep": 2}, "has none; leave ep and etp out"),
        ({"devices": 7, "pp": 1}, "write global_batch = 63 or 70"),
        ({"tp": 3}, "multiple of 3"),
        ({"micro_batch": 48}, "does not divide by dp x micro_batch"),
        ({"startup_s": 5}, "train_tokens"),
        ({"nvme_bytes": 1e12}, "--offload"),
    ],
)
def test_a_plan_of_nothing_says_why(change, message):
    with pytest.raises(OrreryError, match="(?s)" + message):
        orrery.train_plan(**(SMALL | change))


def test_nothing_works_is_infeasible():
    job = {"model": "gpt3-175b", "device": "a100-sxm-80gb", "devices": 8, "global_batch": 8, "seq_len": 2048}
    found = orrery.train_plan(**job, offload="any", host_memory_bytes=1e9, nvme_bytes=0)
    assert found.infeasible.need > found.infeasible.have
    assert not found.plans
    assert not found.offloads
    assert "nothing fits either" in found.infeasible.smallest_change


def test_where_nothing_fits_on_the_devices_states_leave_them():
    job = {"model": "gpt3-175b", "device": "a100-sxm-80gb", "devices": 8, "global_batch": 8, "seq_len": 2048}
    found = orrery.train_plan(**job, train_tokens=1e9)
    assert found.infeasible is None
    assert not found.plans
    best = found.offloads[0]
    assert [p.step_time_s for p in found.offloads] == sorted(p.step_time_s for p in found.offloads)
    again = orrery.train(**best.settings)
    assert again.step_time_s == best.step_time_s
    assert found.to_json()["offload_plans"][0]["run"]["days"] == pytest.approx(best.run.days)


def test_one_technique_of_offloading_is_searched_where_it_is_named():
    job = {"model": "gpt3-1.3b", "device": "a100-sxm-80gb", "devices": 2, "global_batch": 8, "seq_len": 2048}
    found = orrery.train_plan(**job, offload="zero-offload", micro_batch=1)
    assert found.plans
    assert {p.offload for p in found.offloads} == {"zero-offload"}
    with pytest.raises(OrreryError, match="no offload 'zero-of'"):
        orrery.train_plan(**job, offload="zero-of")


def test_a_plan_tries_what_the_framework_runs_unless_told_otherwise():
    job = {"model": "gpt3-13b", "device": "a100-sxm-80gb", "devices": 16, "global_batch": 64, "seq_len": 2048, "tp": 1}
    runs = orrery.train_plan(**job, pp=4, framework="megatron-lm")
    every = orrery.train_plan(**job, pp=4, framework="megatron-lm", schedule="any")
    assert {p.layout.schedule for p in runs.plans} <= {"1f1b", "interleaved"}
    assert runs.launch
    assert every.num_layouts > runs.num_layouts
    assert every.plans[0].step_time_s <= runs.plans[0].step_time_s
    with pytest.raises(ScenarioError, match="is for --plan"):
        orrery.train(**job, pp=4, framework="megatron-lm", schedule="any")


def test_modules_are_recomputed_by_name():
    job = {
        "model": "llama-3-70b",
        "device": "b200",
        "devices": 64,
        "tp": 8,
        "dp": 8,
        "global_batch": 64,
        "seq_len": 8192,
        "framework": "megatron-lm",
        "sharding": "zero1",
    }
    plain, named, whole = (orrery.train(**job, recompute=r) for r in ("none", "attention, mlp", "full"))
    assert named.layout.recompute == "selective"
    assert named.layout.recompute_modules == ("core_attn", "mlp")
    assert plain.peak_memory_bytes > named.peak_memory_bytes > whole.peak_memory_bytes
    assert plain.step_time_s < named.step_time_s < whole.step_time_s
    assert named.to_json()["layout"]["recompute_modules"] == ["core_attn", "mlp"]


@pytest.mark.parametrize(
    ("recompute", "remedy"),
    [("some", "write none, selective, full, or some of core_attn"), ("moe", "has no moe; write some of core_attn")],
)
def test_modules_that_are_none_are_refused(recompute, remedy):
    with pytest.raises(ScenarioError, match=remedy):
        orrery.train(model="llama-3-70b", device="b200", devices=8, global_batch=8, seq_len=4096, recompute=recompute)


MIXTURE = {
    "model": "mixtral-8x7b",
    "device": "h100-sxm",
    "devices": 64,
    "tp": 2,
    "ep": 8,
    "global_batch": 512,
    "seq_len": 4096,
    "sharding": "zero1",
    "recompute": "full",
}


def test_how_tokens_reach_their_experts_is_the_frameworks_or_yours():
    megatron = orrery.train(**MIXTURE, framework="megatron-lm").to_json()
    bridge = orrery.train(**MIXTURE, framework="megatron-bridge").to_json()
    assert (megatron["layout"]["etp"], bridge["layout"]["etp"]) == (2, 1)
    assert any(n.startswith("etp: 2 (as megatron-lm does") for n in megatron["notes"])
    assert (megatron["job"]["dispatcher"], bridge["job"]["dispatcher"]) == ("all-to-all", "hybridep")
    description = orrery.train(**MIXTURE, framework="megatron-lm", etp=1, dispatcher="all-gather").to_json()
    assert (description["layout"]["etp"], description["job"]["dispatcher"]) == (1, "all-gather")
    assert description["parts"]["expert parallel"] != megatron["parts"]["expert parallel"]
    assert "dispatcher" not in orrery.train(**FITS).to_json()["job"], "there are no experts to reach"


def test_uneven_loads_make_a_step_longer():
    even, message = (orrery.train(**MIXTURE, **more).to_json() for more in ({}, {"expert_loads": "balanced"}))
    skewed = orrery.train(**MIXTURE, expert_loads="zipf:1").to_json()
    gathered = orrery.train(**MIXTURE, expert_loads="zipf:1", expert_overlap="sparse-materialisation").to_json()
    assert (even["job"]["expert_loads"], skewed["job"]["expert_loads"]) == ("balanced", "zipf:1")
    assert even["step_time_s"] == message["step_time_s"] < gathered["step_time_s"] <= skewed["step_time_s"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dispatcher": "pigeon"}, "dispatcher"),
        ({"expert_loads": "zipf:9"}, "zipf:S with S from 0 to 4"),
        ({"expert_loads": "nowhere.csv"}, "no file"),
        ({"etp": 3}, "3"),
        ({"etp": 0}, "etp"),
    ],
)
def test_senseless_experts_are_refused(change, message):
    with pytest.raises(OrreryError, match=message):
        orrery.train(**MIXTURE, **change)


def test_loads_of_a_model_without_experts_are_refused():
    with pytest.raises(OrreryError, match="has no experts"):
        orrery.train(**FITS, expert_loads="zipf:1")

"""The name that a plan prints, typed in again, is the plan; and how a layout of the user's stands among all."""

import json
from dataclasses import replace

import numpy as np
import pytest

from orrery.base.errors import OrreryError
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.layout_name import read_name
from orrery.planner.training.search import search
from orrery.planner.training.space import FixedSettings, families, layouts
from orrery.scenario.schema import merged
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_job import layout_of, training_question
from orrery.scenario.train_plan import train_plan
from orrery.training.allowed import broken, refusal
from orrery.training.columns import columns_of
from orrery.training.schedules.registry import SCHEDULES
from orrery.training.step import step_of

JOBS = {
    "dense": {"model": "llama-3.1-8b", "device": "h100-sxm", "devices": 64, "global_batch": 256, "seq_len": 8192},
    "uneven": {"model": "llama-3.1-405b", "device": "h100-sxm", "devices": 1024, "global_batch": 512, "seq_len": 8192},
    "experts": {
        "model": "qwen3-30b-a3b",
        "device": "h100-sxm",
        "devices": 64,
        "global_batch": 256,
        "seq_len": 4096,
        "framework": "megatron-bridge",
    },
    "torchtitan": {
        "model": "llama-3.1-70b",
        "device": "h100-sxm",
        "devices": 64,
        "global_batch": 64,
        "seq_len": 8192,
        "framework": "torchtitan",
    },
}
EACH = 50

SMALL = {"model": "gpt3-1.3b", "device": "a100-sxm-80gb", "devices": 8, "global_batch": 16, "seq_len": 2048}


def drawn(job, seed):
    """Layouts of the space that break no rule, all kinds of families among them."""
    rng, names = np.random.default_rng(seed), tuple(SCHEDULES.techniques)
    every, found = list(families(job, FixedSettings())), []
    while len(found) < EACH:
        x = layouts(job, FixedSettings(), every[rng.integers(len(every))], names)
        good = ~np.any(list(broken(job, x).values()), axis=0)
        if good.any():
            found.append(x.layout(int(rng.choice(np.flatnonzero(good)))))
    return found


@pytest.mark.parametrize("name", JOBS)
def test_the_name_of_a_drawn_plan_gives_the_plans_own_numbers(name):
    """Two hundred of them, over four jobs and three frameworks with other defaults."""
    job = training_question(merged(None, JOBS[name])).job
    plans = drawn(job, len(name))
    typed = [layout_of(training_question(merged(None, JOBS[name] | {"layout": str(p)})))[0] for p in plans]
    mine, theirs = step_of(job, columns_of(typed)), step_of(job, columns_of(plans))
    assert mine.time_s.tolist() == theirs.time_s.tolist()
    assert mine.memory_bytes.tolist() == theirs.memory_bytes.tolist()


def ends_told(plan, layers, rng):
    """The same plan with ends of its own that leave the stages between them as many layers each."""
    between = plan.pp - 2
    most = (layers - 2 * plan.vp) // (between * plan.vp) if between > 0 else 0
    each = plan.vp * int(rng.integers(1, most + 1)) if most > 0 else 0
    left = layers - between * each
    if not each or left % plan.vp or left < 2 * plan.vp:
        return None
    first = plan.vp * int(rng.integers(1, left // plan.vp))
    return replace(plan, first_stage_layers=first, last_stage_layers=left - first)


@pytest.mark.parametrize("name", ["dense", "uneven", "torchtitan"])
def test_plans_whose_ends_are_told_keep_their_numbers_by_name(name):
    rng, question = np.random.default_rng(7), training_question(merged(None, JOBS[name]))
    job, layers = question.job, question.job.model.num_layers
    plans = [p for plan in drawn(job, 11) if plan.pp > 2 and (p := ends_told(plan, layers, rng))]
    plans = [p for p in plans if not refusal(job, columns_of([p]))]
    assert len(plans) > 5
    typed = [layout_of(training_question(merged(None, JOBS[name] | {"layout": str(p)})))[0] for p in plans]
    assert [(t.first_stage_layers, t.last_stage_layers) for t in typed] == [
        (p.first_stage_layers, p.last_stage_layers) for p in plans
    ]
    mine, theirs = step_of(job, columns_of(typed)), step_of(job, columns_of(plans))
    assert mine.time_s.tolist() == theirs.time_s.tolist()
    assert mine.memory_bytes.tolist() == theirs.memory_bytes.tolist()


def test_a_search_holds_told_ends_fast():
    inputs = SMALL | {"devices": 16, "global_batch": 64, "pp": 4, "last_stage_layers": 3}
    for plan in train_plan(**inputs).plans:  # 24 = 7 + 7 + 7 + 3
        assert (plan.layout.pp, plan.layout.first_stage_layers, plan.layout.last_stage_layers) == (4, 0, 3)
        assert plan.layout.vp == 1


def test_plans_that_are_printed_are_answered_alike():
    plans = train_plan(**SMALL).plans
    for plan in plans:
        again = train(**SMALL, layout=str(plan.layout))
        assert isinstance(again, TrainAnswer)
        assert again.step_time_s == pytest.approx(plan.step_time_s, rel=1e-12)
        assert again.peak_memory_bytes == pytest.approx(plan.peak_memory_bytes, rel=1e-12)


def test_what_a_name_leaves_out_is_off_and_devices_left_over_are_data_parallel():
    """Megatron-Bridge would cut sequences and shard the optimizer where nobody says."""
    layout, _ = layout_of(training_question(merged(None, JOBS["experts"] | {"layout": "tp2 ep8 mb2"})))
    assert layout == TrainingLayout(tp=2, ep=8, dp=32, micro_batch=2, is_sequence_parallel=False)


def test_parts_that_are_recomputed_by_name_stand_in_the_name():
    layout = TrainingLayout(dp=64, recompute="selective", recompute_modules=("core_attn", "mlp"))
    again, _ = layout_of(training_question(merged(None, JOBS["dense"] | {"layout": str(layout)})))
    assert again.recompute_modules == ("core_attn", "mlp")
    assert str(again) == str(layout)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tp8 zreo1", "write 'zero1'"),
        ("", "is missing|is empty|write one"),
        ("tp8 tp4", "says tp twice"),
        ("zero1 zero3", "says sharding twice"),
        ("tp0", "no part of a layout"),
        ("8", "no part of a layout"),
        ("tp8 recompute-ful", "write"),
        ("mb1 " + "x" * 300, "no part of a layout"),
        ("tp8é", "no part of a layout"),
    ],
)
def test_a_wrong_word_is_named_with_the_nearest_right_one(name, message):
    with pytest.raises(OrreryError, match=message):
        read_name(name, tuple(SCHEDULES.techniques))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layout": "dp8 mb1", "tp": 2}, "leave tp out"),
        ({"layout": "dp8 mb1", "sequence_parallel": True}, "leave sequence_parallel out"),
        ({"layout": "tp16 mb1"}, "devices = 16"),
        ({"layout": "dp8 mb1", "offload": "zero-offload"}, "write tp, dp and micro_batch"),
        ({"against": "dp8 mb1"}, "is for --plan"),
    ],
)
def test_a_name_beside_what_it_says_is_refused(change, message):
    with pytest.raises(OrreryError, match=message):
        train(**(SMALL | change))


def test_the_rank_is_the_number_of_faster_layouts_that_fit():
    """Counted once with everything costed, and once while bounds rule out what cannot matter."""
    job = training_question(merged(None, SMALL)).job
    slow = TrainingLayout(tp=4, pp=2, is_sequence_parallel=True)
    mine_s = float(step_of(job, columns_of([slow])).time_s[0])
    requested = FixedSettings(schedules=("1f1b", "interleaved"))
    counts = {search(job, requested, prunes=prunes, rank_s=mine_s).num_faster for prunes in (True, False)}
    assert len(counts) == 1
    assert counts.pop() > 10


def test_a_layout_of_the_users_stands_beside_the_best():
    found = train_plan(**SMALL, against="tp4 sp pp2 mb1 1f1b")
    assert found.against is not None
    best, mine = found.plans[0], found.against
    assert mine.fits
    assert mine.rank > 1
    assert sum(mine.seconds_lost(best).values()) == pytest.approx(mine.answer.step_time_s - best.step_time_s)
    assert mine.differences(best)["tp"] == (4, best.layout.tp)
    message = json.loads(json.dumps(found.to_json()))["against"]
    assert message["rank"] == mine.rank
    assert message["time_ratio"] > 1.0
    again = train_plan(**SMALL, against=str(best.layout))
    assert again.against is not None
    assert again.against.rank == 1


def test_a_layout_that_makes_no_sense_is_refused_with_the_nearest_that_does():
    with pytest.raises(OrreryError, match="nearest layout that works"):
        train_plan(**SMALL, against="tp1 pp2 dp4 vp3 mb1 interleaved zero2")
    with pytest.raises(OrreryError, match="write --against"):
        train_plan(**SMALL, layout="dp8 mb1")


def test_a_layout_that_does_not_fit_says_what_it_needs():
    found = train_plan(**(SMALL | {"model": "gpt3-13b", "devices": 16}), against="dp16 mb1")
    assert found.against is not None
    assert not found.against.fits
    assert found.against.need_bytes > found.against.have_bytes


def test_a_run_of_so_many_tokens_has_days_device_hours_and_dollars():
    """8 devices for the wall's hours; the plan says it for every layout."""
    found = train_plan(**SMALL, train_tokens=1e10, usd_per_hour=2.0)
    for plan in found.plans:
        assert plan.run is not None
        assert plan.run.device_hours == pytest.approx(8 * plan.run.days * 24)
        assert plan.run.usd == pytest.approx(2.0 * plan.run.device_hours, rel=0.2)
    assert "device_hours" in found.to_json()["plans"][0]["run"]
    assert replace(found.plans[0].run, num_devices=16).device_hours == pytest.approx(
        2 * found.plans[0].run.device_hours
    )

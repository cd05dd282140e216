"""Objectives that were missed, patches of a picture, and the first technique of offloading that fits: by hand."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario import patches, train_offload
from orrery.scenario.attainment import Attained, needed_frac
from orrery.scenario.patches import PatchGain, check_patches, patches_json, read_patches
from orrery.scenario.schema import read_scenario
from orrery.serving.metrics.percentiles import PercentileFound, PercentileLimit

# --- objectives


def percentile(share_frac, attained_frac, value_s):
    limit = PercentileLimit(metric="ttft", share_frac=share_frac, limit_s=1.0)
    return PercentileFound(limit=limit, value_s=value_s, attained_frac=attained_frac)


def objectives(attained_frac=0.95, by_metric=None, percentiles=()):
    return Attained(
        needed_frac=0.9, attained_frac=attained_frac, attained_by_metric=by_metric or {}, percentiles=percentiles
    )


def test_the_worst_objective_lacks_the_largest_share():
    """Of 90 %, tpot lacks 20 points and ttft none; of 99 %, p99_ttft lacks 30."""
    by_metric = {"ttft": 0.95, "tpot": 0.7}
    assert objectives(by_metric=by_metric).worst == "tpot"
    assert objectives(by_metric=by_metric, percentiles=(percentile(0.99, 0.69, 2.0),)).worst == "p99_ttft"
    assert objectives(by_metric=by_metric, percentiles=(percentile(0.99, 0.8, 2.0),)).worst == "tpot"
    assert objectives().worst == ""


def test_objectives_are_met_at_the_very_share():
    assert objectives(0.9).is_met
    assert not objectives(0.89).is_met
    assert not objectives(0.95, percentiles=(percentile(0.99, 0.98, 1.1),)).is_met
    assert objectives(None, percentiles=(percentile(0.99, 1.0, 1.0),)).is_met


def test_without_objectives_nothing_is_said():
    none = objectives(None)
    assert (none.has_objectives, none.to_json()) == (False, {"slo_is_met": None, "slo_percentiles": None})
    assert objectives(0.5).to_json() == {"slo_is_met": False, "slo_percentiles": None}
    assert objectives(None, percentiles=(percentile(0.5, 1.0, 0.5),)).to_json()["slo_is_met"] is True
    assert (needed_frac(read_scenario({})), needed_frac(read_scenario({"attainment": 0.5}))) == (0.9, 0.5)


# --- patches


def picture(**job):
    """Smallest grid: 64 rows of tokens, halved twice."""
    model = SimpleNamespace(
        name="m", shrink=4, token_grid=lambda height, width, num_frames: (height, width, num_frames)
    )
    job = {"patches": 4, "ulysses": 1, "ring": 1, "model": model, "height": 64, "width": 32, "num_frames": 1, **job}
    return SimpleNamespace(**job)


def test_patches_and_sequence_degrees_exclude_each_other_and_rows_bound_patches():
    for fine in ({}, {"patches": 16}, {"patches": 1, "ulysses": 8}, {"patches": 1, "height": 0}):
        check_patches(picture(**fine))
    with pytest.raises(ScenarioError, match="has 16 rows at this size; write at most 16"):
        check_patches(picture(patches=17))
    for wrong in ({"ulysses": 2}, {"ring": 2}):
        with pytest.raises(ScenarioError, match="either patches or a sequence degree"):
            check_patches(picture(**wrong))


def drawn(*kinds):
    return SimpleNamespace(name="m", blocks=[SimpleNamespace(kind=kind) for kind in kinds])


def test_settings_of_patches_need_patches():
    asked = {"patch_context": "neighbour", "patch_read_frac": 0.5, "patch_warmup_steps": 2}
    full = drawn("softmax")
    assert read_patches(read_scenario({"patch_parallel": 2, **asked}), full) == asked
    assert read_patches(read_scenario({}), full) == {}
    for number in ({}, {"patch_parallel": 1}):
        with pytest.raises(ScenarioError, match="patch_context, patch_read_frac, patch_warmup_steps: of patches"):
            read_patches(read_scenario(number | asked), full)
    assert read_patches(read_scenario({"patch_parallel": 1}), drawn("linear")) == {}
    with pytest.raises(ScenarioError, match="linear attention"):
        read_patches(read_scenario({"patch_parallel": 2}), drawn("softmax", "linear"))


def generated(latency_s, **stages):
    parts = SimpleNamespace(attention_s=1.5, time_s=6.0)
    stages = [SimpleNamespace(name=name.replace("_", ", "), time_s=s, parts=parts) for name, s in stages.items()]
    return SimpleNamespace(latency_s=latency_s, stages=stages)


def gain(monkeypatch, read_ratio):
    """20 passes over 4 patches, of which 5 wait: 12 s on one device (10 s of passes), 4 s on four (1 and 1.5 s)."""
    exchanged = SimpleNamespace(read_ratio=read_ratio, received_bytes=3.0, exchange_s=0.25)
    work = SimpleNamespace(exchanged=exchanged, num_first=5, kept_bytes=7.0)
    monkeypatch.setattr(patches, "generate", lambda job: generated(12.0, text=2.0, denoise=10.0))
    monkeypatch.setattr(patches, "replace", lambda job, patches: job)
    monkeypatch.setattr(patches, "patched_work", lambda job: work)
    job = SimpleNamespace(patches=4, num_passes=20, patch_context="neighbour")
    return job, generated(4.0, text=1.5, denoise=1.0, denoise_waiting=1.5)


def test_gains_of_patches_by_hand(monkeypatch):
    """Two of four patches are read: half of the attention, a quarter of the time, is left out in 15 of 20 passes."""
    job, many = gain(monkeypatch, 2.0)
    found = PatchGain(job=job, many=many)
    assert (found.speedup, found.denoise_speedup, found.read_frac) == (3.0, 4.0, 0.5)
    assert found.attention_left_out_frac == 0.25 * 0.5 * 0.75
    assert found.most_denoise_speedup == 4 / (1 - 0.09375)
    whole = PatchGain(job=job, many=many)
    whole.work.exchanged.read_ratio = 8.0
    assert (whole.read_frac, whole.attention_left_out_frac, whole.most_denoise_speedup) == (1.0, 0.0, 4.0)


def test_gains_are_printed_as_they_are(monkeypatch):
    job, many = gain(monkeypatch, 2.0)
    assert patches_json(job, many) == {
        "context": "neighbour",
        "read_frac": 0.5,
        "received_bytes_per_pass": 3.0,
        "exchange_s_per_pass": 0.25,
        "kept_bytes": 7.0,
        "waiting_passes": 5,
        "speedup": 3.0,
        "denoise_speedup": 4.0,
        "most_denoise_speedup": 4 / (1 - 0.09375),
        "attention_left_out_frac": 0.09375,
    }


# --- the first technique of offloading that fits


def layout(**degrees):
    return SimpleNamespace(**{"tp": 1, "pp": 1, "cp": 1, "ep": 1, "micro_batch": 1, **degrees})


@pytest.fixture
def tried(monkeypatch):
    """What is tried, in its order, where only ``fits`` does."""

    def look(scenario, start, fits=lambda change: False):
        seen = []

        def first_fit(scenario, changes):
            (change,) = changes
            seen.append((change["tp"], change["micro_batch"], change["offload"]))
            return "fits" if fits(change) else ""

        monkeypatch.setattr(train_offload, "first_fit", first_fit)
        monkeypatch.setattr(train_offload, "ladder", lambda: ("least", "most"))
        return train_offload.first_offload(read_scenario(scenario), start), seen

    return look


def test_smaller_batches_and_more_of_the_ladder_come_before_wider_layouts(tried):
    said, seen = tried({"devices": 4}, layout(tp=2, micro_batch=8))
    assert said == ""
    ways = [(size, name) for size in (8, 1) for name in ("least", "most")]
    assert seen == [(tp, *way) for tp in (2, 4) for way in ways]


@pytest.mark.parametrize(
    ("scenario", "tp", "degrees"),
    [
        ({"devices": 16}, 2, [2, 4, 6, 8]),
        ({"devices": 16, "devices_per_node": 4}, 2, [2, 4]),
        ({"devices": 4}, 3, [3]),
        ({"devices": 4}, 8, [8]),
        ({}, 1, [1]),
    ],
)
def test_wider_layouts_stay_within_a_node(tried, scenario, tp, degrees):
    _, seen = tried(scenario, layout(tp=tp))
    assert seen == [(n, 1, name) for n in degrees for name in ("least", "most")]


def test_only_what_changes_is_said(tried):
    fits = {
        "--offload least": lambda change: True,
        "--offload most, micro_batch = 1": lambda c: c["micro_batch"] == 1 and c["offload"] == "most",
        "--offload least, tp = 4": lambda c: c["tp"] == 4,
    }
    for words, law in fits.items():
        said, _ = tried({"devices": 8}, layout(tp=2, micro_batch=8), law)
        assert said == words
    said, _ = tried({"devices": 8}, layout(pp=2, ep=4), lambda change: True)
    assert said == "--offload least without pp, ep"

"""What was learned: small, in order, only where it was measured, and never on the way of an estimate."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from drawn_ops import ops

from orrery import kernels
from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.catalog import residuals
from orrery.catalog.calibrations import calibrations_for
from orrery.catalog.devices import get_device
from orrery.catalog.residuals import FOLDER, read_forests, read_row_spreads
from orrery.evidence.check import check_table
from orrery.evidence.kernel_rows import unlearned_device
from orrery.evidence.split import TEST, sides
from orrery.evidence.tables import read_table
from orrery.kernels import energy
from orrery.kernels.energy import learned
from orrery.kernels.ops import Gemm, LatentDecode, LatentPrefill
from orrery.kernels.residual.error_range import Spreads, scales

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ORRERY_DATA", ROOT.parent / "shared" / "data")) / "kernels"
LARGEST_BYTES = 5_000_000
SPREADS = sorted(FOLDER.glob("*_spread.npz"))
FORESTS = sorted(set(FOLDER.glob("*.npz")) - set(SPREADS))
RATIOS = ("low_95_ratio", "low_80_ratio", "high_80_ratio", "high_95_ratio")
EDGE = 4  # a factor beyond the measured sizes at which nothing learned may speak


def test_everything_learned_is_small() -> None:
    """All trees of all ops together."""
    assert 0 < sum(path.stat().st_size for path in FOLDER.glob("*.npz")) < LARGEST_BYTES


@pytest.mark.parametrize("path", FORESTS + SPREADS, ids=lambda p: p.stem)
def test_trees_answer_beside_constants_of_the_same_device(path: Path) -> None:
    """A key that no calibration has would never be read; siblings are told apart from devices."""
    op, read = path.stem.removesuffix("_spread"), read_row_spreads if path in SPREADS else read_forests
    for key in read(path):
        owner, format, engine = key.split("|")
        generation = owner.removeprefix("generation=") if owner.startswith("generation=") else ""
        found = calibrations_for(owner, generation or get_device(owner).generation)[op, format, engine]
        assert found.origin == ("generation" if generation else "device")
        assert path in SPREADS or found.residual is not None


@pytest.mark.parametrize("path", SPREADS, ids=lambda p: p.stem)
def test_levels_are_in_order_and_scales_are_positive(path: Path) -> None:
    """Whatever the features."""
    x = np.random.default_rng(0).normal(0, 10, (500, 40))
    for spread in read_row_spreads(path).values():
        low_80, high_80, low_95, high_95 = spread.levels
        assert low_95 <= low_80 < high_80 <= high_95
        scale = scales(np.ascontiguousarray(x[:, : len(spread.trees.names)]), spread)
        assert np.isfinite(scale).all()
        assert (scale > 0).all()


@pytest.mark.parametrize("name", ["h200-sxm", "b200", "l40s", "mi300x", "m1"])
def test_every_op_has_an_interval_for_every_row(name: str) -> None:
    """In order, finite, of the op's shape; one for all on a device that was never measured."""
    device = get_device(name)
    for op in ops(np.random.default_rng(1), "bf16"):
        try:
            timing = kernels.predict(op, device, "tensorrt-llm")
        except OutOfRange:
            continue
        found = kernels.spreads(op, timing, device, "tensorrt-llm")
        edges = np.array([np.broadcast_to(getattr(found, r), timing.time_s.shape) for r in RATIOS])
        assert (edges > 0).all()
        assert (np.diff(edges, axis=0) >= 0).all()
        assert isinstance(found, Spread) or kernels.calibration(op, device, "tensorrt-llm").origin == "device"


def test_intervals_differ_from_row_to_row() -> None:
    """Narrow where measurements say that the rule is sure."""
    op = Gemm(m=np.array([4, 16384]), n=8192, k=8192, format="bf16", is_cold=False)
    device = get_device("h100-sxm")
    found = kernels.spreads(op, kernels.predict(op, device, "tensorrt-llm"), device, "tensorrt-llm")
    assert isinstance(found, Spreads)
    widths = np.log(found.high_80_ratio / found.low_80_ratio)
    assert abs(widths[1] - widths[0]) > 0.01


def test_one_answer_has_the_interval_of_its_row() -> None:
    """``spread`` of a plain op is a row of ``spreads``."""
    device, sizes = get_device("h100-sxm"), {"n": 4096, "k": 4096, "format": "bf16"}
    many = Gemm(m=np.array([64, 512, 4096]), **sizes)
    rows = kernels.spreads(many, kernels.predict(many, device, "tensorrt-llm"), device, "tensorrt-llm")
    one = kernels.spread(Gemm(m=512, **sizes), device, "tensorrt-llm")
    assert isinstance(one, Spread)
    for ratio in RATIOS:
        assert getattr(one, ratio) == pytest.approx(getattr(rows, ratio)[1])


def test_beyond_the_measured_sizes_all_rows_share_one_interval() -> None:
    """What was learned fades."""
    device = get_device("h100-sxm")
    found = device.calibrations["gemm", "bf16", "tensorrt-llm"]
    op = Gemm(m=int(found.range["m"][1]) * EDGE, n=4096, k=4096, format="bf16")
    stated = kernels.spread(op, device, "tensorrt-llm")
    for ratio in RATIOS:
        assert getattr(stated, ratio) == pytest.approx(getattr(found.spread, ratio))


def test_borrowed_constants_keep_the_one_interval_widened() -> None:
    """Trees know the kernels of the engine that was measured."""
    op, device = Gemm(m=512, n=4096, k=4096, format="bf16"), get_device("h100-sxm")
    own, borrowed = (kernels.calibration(op, device, engine) for engine in ("tensorrt-llm", "llama.cpp"))
    assert own.row_spread() is not None
    assert borrowed.row_spread() is None
    assert kernels.spread(op, device, "llama.cpp") == borrowed.spread


def test_no_estimate_reads_a_row_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions do not even open the files."""

    def refuse(op: str) -> None:
        raise AssertionError(op)

    monkeypatch.setattr(residuals, "_row_spreads", refuse)
    for op in ops(np.random.default_rng(2), "bf16"):
        kernels.predict(op, get_device("h200-sxm"), "tensorrt-llm")
    with pytest.raises(AssertionError, match="gemm"):
        kernels.spread(Gemm(m=512, n=4096, k=4096, format="bf16"), get_device("h200-sxm"), "tensorrt-llm")


@pytest.mark.parametrize("is_cold", [True, False])
def test_latent_trees_answer_alike_for_one_and_for_many(is_cold: bool) -> None:
    """Plain numbers take another way through the kernels."""
    rng, device = np.random.default_rng(3), get_device("h200-sxm")
    batch, tokens, heads = rng.integers(1, 300, 50), rng.integers(1, 20000, 50), rng.choice([8, 16, 32, 128], 50)
    for build in (
        lambda b, t, h: LatentDecode(
            batch=b, context_tokens=t, num_heads=h, format="bf16", kv_format="bf16", is_cold=is_cold
        ),
        lambda b, t, h: LatentPrefill(
            batch=b, query_tokens=t, context_tokens=t, num_heads=h, format="bf16", kv_format="bf16"
        ),
    ):
        many = kernels.predict(build(batch, tokens, heads), device).time_s
        one = [
            float(kernels.predict(build(int(b), int(t), int(h)), device).time_s)
            for b, t, h in zip(batch, tokens, heads, strict=True)
        ]
        assert many == pytest.approx(one, rel=1e-12)


def test_latent_trees_speak_only_where_they_were_taught_and_never_beat_the_peak() -> None:
    """Beyond the measured batches the physics answers; the compute roof holds everywhere."""
    device, bare = get_device("h200-sxm"), unlearned_device("h200-sxm")
    sizes = {"num_heads": 16, "format": "bf16", "kv_format": "bf16"}
    most = int(device.calibrations["mla_decode", "bf16+bf16", "tensorrt-llm"].range["batch"][1])
    for batch, is_alike in ((most // 8, False), (most * EDGE, True)):
        op = LatentDecode(batch=np.array([batch]), context_tokens=2048, **sizes)
        timing, physics = kernels.predict(op, device), kernels.predict(op, bare)
        assert (timing.time_s[0] == physics.time_s[0]) == is_alike
        assert timing.time_s[0] >= timing.compute_s[0]


@pytest.mark.parametrize("op", ["", "norm", *learned.OPS])
def test_power_stays_between_idle_and_the_limit(op: str) -> None:
    """With what was learned of a kernel, or of none."""
    device = get_device("h200-sxm")
    flops, moved = np.meshgrid(np.geomspace(1e9, 1e15, 20), np.geomspace(1e8, 4.8e12, 20))
    watts = energy.power_w(device, "bf16", flops, moved, op)
    assert watts.shape == flops.shape
    assert (watts >= device.idle_power_w).all()
    assert (watts <= device.power_limit_w).all()


def test_power_of_a_step_is_the_rule_alone() -> None:
    """Trees speak of one repeated kernel; without its name, and of one that was never measured, they are silent."""
    device = get_device("h200-sxm")
    bare = replace(device, calibrations={k: replace(c, residual=None) for k, c in device.calibrations.items()})
    rule, gemm, norm = (
        energy.power_w(d, "bf16", 3e14, 1e12, op) for d, op in ((bare, "gemm"), (device, "gemm"), (device, "norm"))
    )
    assert energy.power_w(device, "bf16", 3e14, 1e12) == rule == norm
    assert gemm != rule


@pytest.mark.skipif(not DATA.is_dir(), reason="the measured tables are not here; set ORRERY_DATA")
def test_latent_trees_halve_the_error_on_unseen_shapes() -> None:
    """Rows of the test side, which had no part in any choice."""
    whole = read_table(DATA / "mla.csv.gz")
    table = whole.take(whole.words("op") == "mla_prefill")
    test = sides(table, "mla_prefill") == TEST
    with_trees, physics = check_table(table), check_table(table, is_learned=False)
    better, before = (np.median(np.abs(c.error("time_s", c.scored("time_s") & test))) for c in (with_trees, physics))
    assert better < 0.6 * before
    inside = with_trees.answers.inside("time_s", with_trees.measured["time_s"], 80)[test]
    assert 0.7 < np.nanmean(inside) < 0.9

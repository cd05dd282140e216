"""The file that a calibration writes: read back as a device, refused where it must be, asked like any other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orrery import estimate, get_device
from orrery.base.errors import FactError, ScenarioError, UnknownName
from orrery.base.sources import Basis, Fact, Source
from orrery.calibrate.device.calibrate import calibrate_device
from orrery.calibrate.device.facts import facts_of
from orrery.calibrate.device.file import refuse_existing, write_device
from orrery.calibrate.device.rows import row_of, work_of
from orrery.calibrate.device.search import Search
from orrery.calibrate.device.work import Work
from orrery.calibrate.measure.backends.on_numpy import NumpyBackend
from orrery.calibrate.truth.verify import verify_device
from orrery.catalog.models import get_model
from orrery.cli.main import run
from orrery.kernels import host, predict
from orrery.kernels.ops import AttentionDecode, AttentionPrefill, Elementwise, Gemm
from orrery.network.collective import Collective

RUN = Source(title="a run", retrieved="2026-11-21")


@pytest.fixture
def written(tmp_path: Path, box, searching) -> Path:
    """A file as a calibration writes it, of a machine that is played."""
    search: Search = searching(box)
    device = replace(box, calibrations=search.calibrations(1.2, "10 measurements"))
    path = tmp_path / "my-box.toml"
    write_device(path, device, facts_of(device, NumpyBackend(), RUN).stated, {"busy": None, "cores": 2}, RUN)
    return path


def test_what_was_written_is_read_back(written: Path, box) -> None:
    device = get_device(str(written))
    assert device.kind == "cpu"
    assert device.memory_bandwidth_bytes_per_s == pytest.approx(box.memory_bandwidth_bytes_per_s, rel=1e-5)
    own = {key: c for key, c in device.calibrations.items() if c.origin == "device"}
    assert {key[2] for key in own} == {"numpy", "tcp"}
    for key, calibration in own.items():
        assert calibration.law == (host.LAW if key[2] == "numpy" else "")
        for name, value in box.calibrations[key].constants.items():
            assert calibration.constants[name] == pytest.approx(value, rel=1e-5)
        assert calibration.fact is not None
        assert calibration.fact.basis is Basis.MEASURED


def test_every_fact_says_how_it_is_known(written: Path) -> None:
    device = get_device(str(written))
    assert device.facts["dense_fp32_flops_per_s"].basis is Basis.MEASURED
    assert device.facts["memory_bandwidth_bytes_per_s"].basis is Basis.MEASURED
    assert device.facts["scaleout_name"].basis is Basis.ASSUMED


def test_the_file_s_constants_answer_for_its_engine(written: Path, box) -> None:
    device, op = get_device(str(written)), Gemm(m=64, n=1024, k=512, format="fp32")
    assert predict(op, device, "numpy").time_s == pytest.approx(predict(op, box, "numpy").time_s, rel=1e-4)


def test_a_calibration_without_constants_is_refused_in_words(written: Path) -> None:
    text = written.read_text()
    (written.parent / "bad.toml").write_text(text.replace("[calibration.constants]", "[calibration.constant]"))
    with pytest.raises(FactError, match="lacks constants"):
        get_device(str(written.parent / "bad.toml"))


def test_a_file_that_is_there_is_kept_unless_replaced(tmp_path: Path) -> None:
    path = tmp_path / "box.toml"
    path.write_text("mine")
    with pytest.raises(ScenarioError, match="--replace"):
        calibrate_device(path, backend="numpy", measurements=10)
    assert path.read_text() == "mine"
    refuse_existing(path, is_replaced=True)
    with pytest.raises(ScenarioError, match=r"\.toml"):
        refuse_existing(tmp_path / "box.json", is_replaced=False)
    with pytest.raises(ScenarioError, match="folder"):
        refuse_existing(tmp_path / "none" / "box.toml", is_replaced=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"minutes": 0.0}, "minutes"),
        ({"measurements": 2}, "at least 4"),
        ({"formats": ("fp4",)}, "fp4"),
        ({"table": "rows.txt"}, r"\.csv"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_measuring(tmp_path: Path, words, message) -> None:
    with pytest.raises(ScenarioError, match=message):
        calibrate_device(tmp_path / "box.toml", **{"backend": "numpy", **words})
    assert not list(tmp_path.iterdir())


def test_an_unknown_backend_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="numpi"):
        calibrate_device(tmp_path / "box.toml", backend="numpi", measurements=10)


def test_a_device_that_was_not_measured_cannot_be_verified() -> None:
    with pytest.raises(ScenarioError, match="was not measured with NumPy"):
        verify_device("h100-sxm")


def test_a_missing_fact_is_said_and_nothing_written(tmp_path: Path, box) -> None:
    with pytest.raises(ScenarioError, match="nothing is known of"):
        write_device(tmp_path / "box.toml", box, {}, {}, RUN)
    assert not list(tmp_path.iterdir())


def test_facts_of_other_sources_keep_them(tmp_path: Path, box) -> None:
    message = dict(facts_of(box, NumpyBackend(), RUN).stated)
    sheet = Source(title="A data sheet", url="https://example.org/sheet")
    message["power_limit_w"] = Fact(
        name="power_limit_w", value=65.0, basis=Basis.STATED, source=sheet, at='page 3, "TDP"'
    )
    write_device(tmp_path / "box.toml", replace(box, calibrations={}), message, {}, RUN)
    fact = get_device(str(tmp_path / "box.toml")).facts["power_limit_w"]
    assert (fact.value, fact.source, fact.at) == (65.0, sheet, 'page 3, "TDP"')


OPS = (
    Gemm(m=3, n=64, k=32, format="fp32", is_cold=False, quantises_input=False),
    AttentionPrefill(
        batch=1,
        query_tokens=16,
        context_tokens=16,
        num_heads=4,
        num_kv_heads=2,
        head_size=64,
        format="fp32",
        kv_format="fp32",
    ),
    AttentionDecode(
        batch=2, context_tokens=99, num_heads=4, num_kv_heads=2, head_size=64, format="fp32", kv_format="fp32"
    ),
    Elementwise(kind="norm", tokens=5, width=256, format="fp32"),
    Collective(
        kind="all_reduce", num_devices=2, message_bytes=4096.0, devices_per_node=2, library="tcp", has_peer_to_peer=True
    ),
)


@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_a_row_says_what_was_measured(op, box) -> None:
    work = Work(op=op, engine="tcp" if isinstance(op, Collective) else "numpy")
    row = {name: str(value) for name, value in row_of(work, "box", "here").items()}
    again = work_of(row)
    assert again.name == work.name
    assert again.key == work.key
    assert float(again.time_s(box)) == float(work.time_s(box))


@pytest.mark.parametrize("sub", ["device", "runs", "compare", "verify"])
def test_every_calibration_has_help(sub: str, capsys) -> None:
    assert run(["calibrate", sub, "--help"]) == 0
    assert "Examples" in capsys.readouterr().out


def test_the_host_law_takes_arrays_and_stays_above_the_roofs(box) -> None:
    sizes = np.array([1, 7, 64, 512])
    for op in (
        Gemm(m=sizes, n=512, k=768, format="fp32"),
        AttentionDecode(
            batch=sizes, context_tokens=200, num_heads=8, num_kv_heads=2, head_size=64, format="fp32", kv_format="fp32"
        ),
        Elementwise(kind="norm", tokens=sizes, width=512, format="fp32"),
    ):
        timing = predict(op, box, "numpy")
        assert timing.time_s.shape == sizes.shape
        assert np.all(np.diff(timing.time_s) > 0)
        assert np.all(timing.time_s >= timing.compute_s)


def test_a_restless_machine_widens_every_answer_on_it(written: Path, tmp_path: Path) -> None:
    restless = tmp_path / "restless.toml"
    restless.write_text(written.read_text().replace("[conditions]", "[conditions]\nwiden_ratio = 1.5"))
    requested = {"model": "llama-3.2-1b", "weights": "fp32", "input_tokens": 64, "output_tokens": 8, "batch": 1}
    quiet, wide = (estimate(device=str(path), **requested) for path in (written, restless))
    assert wide.estimate.tpot_s == pytest.approx(quiet.estimate.tpot_s)
    before, after = quiet.estimate.intervals, wide.estimate.intervals
    device = get_device(str(written))
    reading_s = 4 * get_model("llama-3.2-1b").num_parameters / device.memory_bandwidth_bytes_per_s
    for end, ratio in (("low_95", 1 / 1.5), ("low_80", 1 / 1.5), ("high_80", 1.5), ("high_95", 1.5)):
        first, token, whole = (getattr(after[m], end) for m in ("ttft_s", "tpot_s", "latency_s"))
        assert first == pytest.approx(ratio * getattr(before["ttft_s"], end))
        assert token == pytest.approx(max(ratio * getattr(before["tpot_s"], end), reading_s))  # weights must be read
        assert whole == pytest.approx(first + 7 * token)
    for metric, interval in before.items():
        assert after[metric].low_95 < 0.99 * interval.low_95, metric
        if metric != "power_w":  # which ends at the board's limit already
            assert after[metric].high_95 > 1.3 * interval.high_95, metric
    assert [x["power_w"].high_95 for x in (before, after)] == pytest.approx([device.power_limit_w] * 2)
    assert "restless" in " ".join(wide.notes)
    (tmp_path / "absurd.toml").write_text(restless.read_text().replace("widen_ratio = 1.5", "widen_ratio = 0.5"))
    with pytest.raises(FactError, match="widen_ratio"):
        get_device(str(tmp_path / "absurd.toml"))


def test_a_measured_device_brings_its_engine(written: Path) -> None:
    requested = {"model": "llama-3.2-1b", "input_tokens": 64, "output_tokens": 8, "batch": 1, "weights": "fp32"}
    by_itself, named = (
        estimate(device=str(written), **requested),
        estimate(device=str(written), engine="numpy", **requested),
    )
    assert by_itself.estimate.tpot_s == named.estimate.tpot_s
    assert any("numpy" in note and "measured with" in note for note in by_itself.notes)
    text = written.read_text().replace('engine = "numpy"', 'engine = "pytorch"')
    (other := written.parent / "other.toml").write_text(text)
    assert any("transformers" in note for note in estimate(device=str(other), **requested).notes)
    assert named.estimate.tpot_s != estimate(device=str(written), engine="llama.cpp", **requested).estimate.tpot_s

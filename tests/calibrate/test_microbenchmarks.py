"""Microbenchmarks: their arithmetic by hand, a GPU that is played, groups that fail, and tables that are resumed."""

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from played_driver import CYCLES, EVENT_MS, PlayedDriver

from orrery.base.errors import ScenarioError, UnknownName
from orrery.calibrate.micro import suite, worker
from orrery.calibrate.micro._kernel import chased
from orrery.calibrate.micro.answer import known_device, numbers_of, rows_of
from orrery.calibrate.micro.chain import chained
from orrery.calibrate.micro.cuda import compiler
from orrery.calibrate.micro.cuda import gpu as gpu_module
from orrery.calibrate.micro.cuda.assembly import INSTRUCTIONS, MMA, WGMMA, chain_source, mma_source, wgmma_source
from orrery.calibrate.micro.cuda.driver import CudaError
from orrery.calibrate.micro.cuda.gpu import Gpu
from orrery.calibrate.micro.groups import benchmarks, group_names
from orrery.calibrate.micro.reading import Failed, Reading, of_samples, rate_of
from orrery.cli.main import run

RUN = subprocess.run
CUDA_GROUPS = [group for group in group_names("cuda") if group != "products"]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch):
    texts: list[str] = []

    def make(driver: PlayedDriver | None = None) -> Gpu:
        monkeypatch.setattr(gpu_module, "compiled", lambda text, arch: texts.append(text) or b"cubin")
        return Gpu(0, driver or PlayedDriver())

    make.texts = texts
    return make


@given(st.integers(1, 200), st.integers(0, 5))
def test_a_chain_visits_every_place_once_and_comes_back(count: int, seed: int) -> None:
    follows = chained(count, seed)
    place, seen = 0, set()
    for _ in range(count):
        seen.add(place)
        place = int(follows[place])
    assert place == 0
    assert len(seen) == count


def test_the_compiled_chase_follows_the_chain() -> None:
    follows = np.array([2, 0, 1], dtype=np.int64)
    assert [chased(follows, 0, steps) for steps in range(4)] == [0, 2, 1, 0]


def test_a_reading_is_the_median_and_a_rate_is_over_each_sample() -> None:
    time = of_samples("t", [2.0, 4.0, 9.0], "s", per=2.0)
    assert time.value == 2.0
    assert of_samples("t", [3.0, 3.0, 3.0], "s").spread_frac == 0.0
    assert rate_of("r", [2.0, 4.0, 8.0], 16.0, "bytes_per_s").value == 4.0


@pytest.mark.parametrize("group", CUDA_GROUPS)
def test_every_program_of_a_gpu_is_launched_and_read(group: str, gpu) -> None:
    driver = PlayedDriver()
    results = [result for bench in benchmarks("cuda", group) for result in bench(gpu(driver))]
    assert results
    assert all(isinstance(result, Reading) and np.isfinite(result.value) for result in results)
    assert len({result.name for result in results}) == len(results)
    for name, arguments in driver.launches:
        assert _arguments(gpu.texts, name) == len(arguments), name


def _arguments(texts: list[str], kernel: str) -> int:
    """How many arguments a kernel has, by its text or by the macro that writes it."""
    text, head = "\n".join(texts), r"__global__ void (?:__cluster_dims__\([^)]*\) )?"
    written = re.search(rf"{head}{kernel}\(([^)]*)\)", text)
    if written is None:
        macro = re.search(rf"^([A-Z]+)\({kernel},", text, re.M)
        assert macro, kernel
        written = re.search(rf"#define {macro[1]}\(.*?{head}NAME\(([^)]*)\)", text, re.S)
    assert written
    return len([part for part in written[1].split(",") if part.strip()])


def test_values_follow_from_the_times(gpu) -> None:
    found = {r.name: r for g in CUDA_GROUPS for bench in benchmarks("cuda", g) for r in bench(gpu())}
    assert found["l2_latency"].value == CYCLES / 2**14  # steps of the chain
    assert found["fma_fp32_latency"].value == CYCLES / (256 * 64)
    assert found["flag_to_next_block"].value == CYCLES / (2 * 4096)  # there and back
    assert found["l1_read"].value == pytest.approx(16 * 4096 * 256 / CYCLES)
    assert found["memory_copy"].value == pytest.approx(2 * found["memory_read"].value)
    assert found["host_to_device_pinned"].value == pytest.approx(2**28 / (EVENT_MS * 1e-3))
    # 132 processors, eight warps, four chains, 2048 rounds, 2 x 16 x 8 x 16 operations, in 2 ms
    assert found["mma_fp16_rate"].value == pytest.approx(132 * 8 * 4 * 2048 * 4096 / 2e-3)
    # two groups of four warps, eight products a round
    assert found["wgmma_fp8_n256_rate"].value == pytest.approx(132 * 2 * 8 * 2048 * 2 * 64 * 256 * 32 / 2e-3)
    assert found["kernel_gap_graph"].value == 0.0  # many short kernels took as long as one long one


def test_what_hopper_alone_has_is_left_out_before_it(gpu) -> None:
    ampere = PlayedDriver(capability=(8, 0))
    runs = [bench for group in ("exchange", "tensor", "launch") for bench in benchmarks("cuda", group)]
    names = {result.name for bench in runs for result in bench(gpu(ampere))}
    assert "mma_bf16_rate" in names
    assert not [name for name in names if name.startswith(("cluster", "wgmma", "early", "mma_fp8"))]


def test_architectures() -> None:
    found = [compiler.architecture(capability) for capability in ((8, 0), (8, 9), (9, 0), (10, 0))]
    assert found == ["sm_80", "sm_89", "sm_90a", "sm_100a"]


def test_a_call_that_fails_says_which_and_why(gpu) -> None:
    with pytest.raises(CudaError, match=r"cuMemAlloc_v2 failed: CUDA_ERROR_ILLEGAL_ADDRESS \(700\)"):
        list(benchmarks("cuda", "atomics")[0](gpu(PlayedDriver(failing="cuMemAlloc_v2"))))


def test_every_program_compiles_where_nvidia_s_compiler_is() -> None:
    try:
        library = compiler.compiler_library()
    except CudaError:
        pytest.skip("NVRTC is not installed")
    texts = [compiler.source(file.stem) for file in compiler.PROGRAMS.glob("*.cu")]
    texts += [chain_source(instruction) for instruction in INSTRUCTIONS.values()]
    texts += [mma_source(product, 2, is_zero=False) for product in MMA.values()]
    texts += [wgmma_source(product, is_zero=True) for product in WGMMA.values()]
    assert all(len(compiler.compiled(text, "sm_90a", library)) > 1000 for text in texts)
    with pytest.raises(CudaError, match="error"):
        compiler.compiled("nonsense", "sm_90a", library)


def test_the_catalogue_s_numbers_stand_beside_the_results() -> None:
    known = numbers_of(known_device("NVIDIA H100 80GB HBM3"))
    l2 = Reading(name="l2_latency", value=526.0, unit="cycles", fact="inside: l2_cycles")
    other = Reading(name="x", value=1.0, unit="s", fact="nothing alike")
    near, alone, failed = rows_of("latency", [l2, other, Failed(name="y", error="why")], known)
    assert near.known_value == 263.0
    assert near.known_ratio == 2.0
    assert alone.known_value is None
    assert alone.fact == ""
    assert failed.error == "why"
    assert failed.value is None
    assert known["inside: pair_cycle_bytes / processors"] == pytest.approx(1863 / 114)
    assert numbers_of(known_device("Frobnicator 9000")) == {}


def _told(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_microbenchmark_that_fails_is_told_and_the_others_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(subject):
        yield of_samples("first", [1.0], "s")
        raise CudaError("the device is lost.\nmore")

    def whole(subject):
        yield Failed(name="refused", error="not here")
        yield of_samples("second", [2.0], "s")

    monkeypatch.setattr(worker, "subject", lambda platform, group, index: (None, "A device"))
    monkeypatch.setattr(worker, "benchmarks", lambda platform, group: (broken, whole))
    worker.main("cuda", "latency", 0)
    device, first, failed, refused, second = _told(capsys)
    assert device == {"device": "A device"}
    assert first["reading"]["name"] == "first"
    assert failed == {"failed": {"name": "broken", "error": "the device is lost."}}
    assert refused["failed"]["error"] == "not here"
    assert second["reading"]["value"] == 2.0


def test_a_group_without_its_subject_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        worker.main("cuda", "latency", 0)
        (only,) = _told(capsys)
        assert "libcuda" in only["failed"]["error"]
    else:
        pytest.skip("NVIDIA's driver is here")


def _script(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Every group is this program."""
    monkeypatch.setattr(suite.subprocess, "run", lambda command, **how: RUN([sys.executable, "-c", text], **how))


RESULT = json.dumps({"reading": {"name": "a", "value": 1.5, "unit": "s", "spread_frac": 0.1}})
SAYS = f"""print('{{"device": "Box"}}'); print('a library speaks'); print(3)
print('{RESULT}', flush=True)
"""


def test_a_process_that_ends_early_leaves_its_results_and_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    _script(monkeypatch, SAYS + "raise SystemExit('out of luck')")
    found = suite.measure_microbenchmarks(backend="numpy", only=("threads",))
    assert found.device == "Box"
    assert [(row.name, row.value) for row in found.rows] == [("a", 1.5), ("threads", None)]
    assert "ended with 1: out of luck" in found.rows[1].error


def test_a_group_that_hangs_is_ended_and_keeps_its_results(monkeypatch: pytest.MonkeyPatch) -> None:
    _script(monkeypatch, SAYS + "import time; time.sleep(60)")
    found = suite.measure_microbenchmarks(backend="numpy", only=("threads",), limit_s=0.5)
    assert found.rows[0].value == 1.5
    assert "longer than 0.5 s" in found.rows[1].error


def test_a_table_is_resumed_where_a_group_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = tmp_path / "micro.csv"
    _script(monkeypatch, SAYS)
    suite.measure_microbenchmarks(backend="numpy", only=("latency",), table=table)
    _script(monkeypatch, "raise SystemExit('no')")
    suite.measure_microbenchmarks(backend="numpy", only=("latency", "threads"), table=table, is_resumed=True)
    assert table.read_text().count("\n") == 3
    _script(monkeypatch, SAYS.replace("1.5", "2.5"))
    found = suite.measure_microbenchmarks(backend="numpy", only=("latency", "threads"), table=table, is_resumed=True)
    assert [(row.group, row.value, row.error) for row in found.rows] == [("latency", 1.5, ""), ("threads", 2.5, "")]
    _script(monkeypatch, SAYS.replace("Box", "Other"))
    with pytest.raises(ScenarioError, match="measured on Box, this is Other"):
        suite.measure_microbenchmarks(backend="numpy", only=("products",), table=table, is_resumed=True)
    table.write_text("a,b\n1,2\n")
    with pytest.raises(ScenarioError, match="not a table of microbenchmarks"):
        suite.measure_microbenchmarks(backend="numpy", only=("products",), table=table, is_resumed=True)


def test_the_gpu_is_found_by_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "driver_library", lambda: PlayedDriver(num_gpus=2))
    _script(monkeypatch, SAYS)
    for backend in ("", "cuda", "cuda:1", "pytorch", "pytorch:cuda:1"):
        assert len(suite.measure_microbenchmarks(backend=backend).rows) == len(group_names("cuda")), backend
    with pytest.raises(ScenarioError, match="shows 2 GPUs"):
        suite.measure_microbenchmarks(backend="cuda:2")
    for wrong in ("tpu", "cuda:x", "numpy:1"):
        with pytest.raises(UnknownName):
            suite.measure_microbenchmarks(backend=wrong)


def test_no_time_is_refused() -> None:
    with pytest.raises(ScenarioError, match="seconds above 0"):
        suite.measure_microbenchmarks(backend="numpy", limit_s=0.0)


def test_the_processor_is_measured() -> None:
    found = suite.measure_microbenchmarks(backend="numpy", only=("threads",))
    assert {row.name for row in found.rows} == {"thread_wake_up", "pipe_wake_up", "numpy_call"}
    assert all(row.value and row.value > 0 and not row.error for row in found.rows)
    assert found.to_json()["rows"][0]["unit"] == "s"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--suite", "micro"], "no suite 'micro'"),
        (["--suite", "microbenchmarks", "--minutes", "3"], "--minutes has no effect"),
        (["--suite", "microbenchmarks", "--no-exchange"], "--exchange has no effect"),
        (["--suite", "microbenchmarks", "--only", "foo"], "no group of microbenchmarks 'foo'"),
        (["--suite", "microbenchmarks", "--resume"], "write --table"),
        (["--suite", "microbenchmarks", "--table", "no/such/folder.csv"], "is a .csv file in a folder"),
        (["--out", "box.toml", "--resume"], "--resume belongs to --suite"),
        ([], "Write --out"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "device", *arguments]) == 2
    assert words in capsys.readouterr().err

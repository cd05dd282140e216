"""Every device file loads, says where each number comes from, and describes a machine that could exist."""

import csv
import os
import time
from pathlib import Path

import pytest
from battery import over

from orrery.base.errors import FactError, UnknownName
from orrery.base.sources import Basis
from orrery.catalog import device_file, device_names, devices
from orrery.catalog.devices import describe, get_device, template
from orrery.hardware.device import Device

DATA = Path(os.environ.get("ORRERY_DATA", Path(__file__).parents[3] / "shared" / "data"))
NAMES = devices.device_names()
GPUS = [name for name in NAMES if get_device(name).kind == "gpu"]

FP16_FLOPS_PER_UNIT_AND_CLOCK = {
    "volta": 1024,
    "hopper": 4096,
    "blackwell": 8192,
    "cdna2": 1024,
    "cdna3": 2048,
    "cdna4": 4096,
}
"""Dense matrix flops of one unit in one clock, from the architecture whitepapers."""

HELD_DOWN = {"h20"}
"""Devices whose matrix rate is limited far below units x clock for export."""


def peak(device: Device, rate: str) -> float:
    return device.dense_flops_per_s.get(rate, 0.0)


def test_the_catalogue_is_broad() -> None:
    assert len(NAMES) >= 90
    assert {get_device(n).vendor for n in NAMES} >= {"NVIDIA", "AMD", "Intel", "Google", "AWS", "Apple", "Huawei"}


@over(NAMES)
def test_every_fact_says_how_we_know(name: str) -> None:
    device = get_device(name)
    assert device.name == name
    for fact in device.facts.values():
        if fact.basis is Basis.ASSUMED:
            assert fact.note, f"{name}: {fact.name} is assumed without a reason"
        else:
            assert fact.source is not None, f"{name}: {fact.name}"
            assert fact.at, f"{name}: {fact.name}"
        if fact.also:
            assert fact.note, f"{name}: {fact.name}: sources differ, and no word on the choice"


@over(NAMES)
def test_every_device_could_exist(name: str) -> None:
    device = get_device(name)
    least_bytes = 2e8 if device.kind == "dataflow" else 2e9  # a dataflow chip may have nothing but its SRAM
    assert least_bytes <= device.memory_capacity_bytes <= 2e12
    assert 5e9 <= device.memory_bandwidth_bytes_per_s <= 1e17
    assert 1e-6 <= device.memory_capacity_bytes / device.memory_bandwidth_bytes_per_s <= 2  # time to read it all
    assert device.last_level_cache_bytes <= device.memory_capacity_bytes
    assert 1 <= device.power_limit_w <= (30_000 if device.kind == "dataflow" else 3000)  # a wafer is a system
    assert 0 < device.idle_power_w <= 0.6 * device.power_limit_w
    slowest_hz = 1e8 if device.kind == "dataflow" else 3e8  # designs on an FPGA close at 100 to 300 MHz
    assert slowest_hz <= device.compute_clock_hz <= 5e9
    for link in (device.scaleup, device.scaleout):
        assert link.each_way_bytes_per_s <= device.memory_bandwidth_bytes_per_s
        assert 1e-7 <= link.latency_s <= 1e-3
    assert device.host.each_way_bytes_per_s <= device.memory_bandwidth_bytes_per_s
    assert device.scaleup.num_devices >= 1
    if device.scaleup.num_devices > 1:
        assert device.devices_per_node <= device.scaleup.num_devices
        assert device.scaleup.each_way_bytes_per_s >= 0.8 * device.scaleout.each_way_bytes_per_s


@over(NAMES)
def test_narrower_formats_are_not_slower(name: str) -> None:
    device = get_device(name)
    wide = max(peak(device, "fp16"), peak(device, "bf16"))
    assert wide > 0, "every device must run 16-bit models"
    assert peak(device, "fp32") <= wide * 1.001
    assert peak(device, "fp32") <= peak(device, "tf32") * 1.001 or "tf32" not in device.dense_flops_per_s
    assert peak(device, "tf32") <= wide * 1.001
    if "fp8" in device.dense_flops_per_s:
        assert wide * 0.999 <= peak(device, "fp8") <= 4.5 * wide
    if "fp4" in device.dense_flops_per_s:
        assert peak(device, "fp4") >= peak(device, "fp8")
    assert device.vector_flops_per_s <= wide * 2.1  # a machine without matrix units runs FP16 no slower than half FP32
    assert 0.1 <= wide / device.memory_bandwidth_bytes_per_s <= 1500  # flops a byte: the ridge of the roof


@over([n for n in GPUS if get_device(n).generation in FP16_FLOPS_PER_UNIT_AND_CLOCK])
def test_peak_is_units_times_clock_times_width(name: str) -> None:
    device = get_device(name)
    width = FP16_FLOPS_PER_UNIT_AND_CLOCK[device.generation]
    derived = device.num_compute_units * device.compute_clock_hz * width
    if name in HELD_DOWN:
        assert peak(device, "fp16") < derived
    else:
        assert peak(device, "fp16") == pytest.approx(derived, rel=0.15)


@over([n for n in GPUS if get_device(n).vendor == "NVIDIA" and n not in HELD_DOWN])
def test_nvidia_vector_and_matrix_rates_fit_units_and_clock(name: str) -> None:
    device = get_device(name)
    per_unit = device.dense_flops_per_s["fp16"] / device.num_compute_units / device.compute_clock_hz
    assert min(abs(per_unit / 2**k - 1) for k in range(8, 14)) < 0.15, "a power of two a unit and clock"
    vector = device.vector_flops_per_s / device.num_compute_units / device.compute_clock_hz
    assert min(abs(vector / lanes - 1) for lanes in (128, 256)) < 0.20  # 64 or 128 lanes; boost above the matrix clock


@over(NAMES)
def test_siblings_that_lend_measurements_are_the_same_silicon(name: str) -> None:
    lender = device_file.measured_as(devices.FOLDER / f"{name}.toml")
    if lender:
        assert lender in NAMES
        assert get_device(lender).generation == get_device(name).generation


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA H100 SXM", "h100-sxm"),
        ("H100-SXM5-80GB", "h100-sxm"),
        ("h100", "h100-sxm"),
        ("h100_sxm", "h100-sxm"),
        ("A100 80GB", "a100-sxm-80gb"),
        ("nvidia a100-sxm4-40gb", "a100-sxm-40gb"),
        ("NVIDIA A100-SXM-64GB", "a100-sxm-64gb"),
        ("B200 SXM", "b200"),
        ("GH200", "gh200-96gb"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Intel Gaudi 2", "gaudi2"),
        ("TPU v5e", "tpu-v5e"),
        ("Apple M2 Ultra", "m2-ultra"),
        ("GeForce RTX 4090", "rtx-4090"),
        ("Tesla T4", "t4"),
        ("RTX PRO 6000 Blackwell Max-Q", "rtx-pro-6000-max-q"),
        ("RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation"),
        ("Tenstorrent Wormhole n300", "wormhole-n300-chip"),
        ("Blackhole p150", "blackhole-p150"),
        ("Qualcomm Cloud AI 100 Ultra", "cloud-ai-100-ultra-chip"),
        ("EPYC Turin", "epyc-9755"),
        ("Ascend 910B3", "ascend-910b"),
        ("RTX 4060 Ti", "rtx-4060-ti-16gb"),
        ("Xeon Platinum 8592+", "xeon-8592plus"),
        ("VR200 NVL144", "rubin"),
        ("M5 Max", "m5-max"),
        ("Snapdragon 8 Elite", "galaxy-s25-ultra"),
    ],
)
def test_usual_spellings_resolve(spelling: str, name: str) -> None:
    assert get_device(spelling).name == name


def test_a_family_name_says_what_it_was_taken_as() -> None:
    assert get_device("mi200").name == "mi250x"
    assert "'a100' taken as a100-sxm-80gb" in get_device("a100").notes[0]
    assert "tp = 2 is one card" in get_device("n300").notes[0]
    assert get_device("a100-sxm-80gb").notes == ()


def test_the_same_name_gives_the_same_object() -> None:
    assert get_device("h100-sxm") is get_device("h100-sxm")
    assert get_device("h100") is get_device("h100")
    assert get_device("H100 SXM5") is get_device("h100-sxm")


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownName, match="h100-sxm") as caught:
        get_device("h100-sxn")
    assert "h100-sxm" in caught.value.near


def test_a_name_cannot_climb_out_of_the_catalogue() -> None:
    with pytest.raises(UnknownName):
        get_device("../../base/units")


def _accepted() -> dict[str, set[str]]:
    """Plain spelling -> the devices that the name tables take it for; several where two tables differ."""
    accepted: dict[str, set[str]] = {}
    for table in ("names.csv", "names_training.csv"):
        with (DATA / "devices" / table).open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                words = [row["device"], *(w.strip() for w in row["aliases_seen"].split(" | ") if w.strip())]
                for word in words:
                    accepted.setdefault(device_names.plain(word), set()).add(row["take_as"] or row["device"])
    return accepted


@pytest.mark.skipif(not (DATA / "devices" / "names.csv").is_file(), reason="the measured tables are not here")
def test_every_spelling_of_the_tables_resolves() -> None:
    for spelling, names in _accepted().items():
        found = get_device(spelling).name
        assert found in names or any(found.startswith(n) for n in names), f"{spelling}: {found} is none of {names}"


@pytest.mark.skipif(not (DATA / "serving").is_dir(), reason="the measured tables are not here")
def test_every_device_of_the_measured_tables_resolves() -> None:
    for folder in ("serving", "training", "kernels"):
        for table in sorted((DATA / folder).glob("*.csv")):
            with table.open(newline="", encoding="utf-8") as lines:
                found = {row.get("device") or "h100" for row in csv.DictReader(lines)}
            for name in found:
                assert get_device(name).name in NAMES, f"{table.name}: {name}"


def test_describe_lists_every_fact_and_what_others_say() -> None:
    rows = describe(get_device("h100-sxm"))
    facts = [row.fact for row in rows]
    assert "memory_bandwidth_bytes_per_s" in facts
    assert any(fact.startswith("also ") for fact in facts)
    assert all(row.basis in tuple(Basis) for row in rows)


def test_a_device_parses_fast_enough_to_type_its_name() -> None:
    start = time.process_time()
    device_file.read_device(devices.FOLDER / "h100-sxm.toml", modified_ns=-1)
    assert time.process_time() - start < 0.1


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(template(), encoding="utf-8")
    return path


def test_the_template_is_a_device(mine: Path) -> None:
    device = get_device(str(mine))
    model = get_device("h100-sxm")
    assert device.name == "mine"
    assert device.title == "My accelerator"
    assert device.dense_flops_per_s == pytest.approx(dict(model.dense_flops_per_s), rel=1e-5)
    assert device.scaleup.each_way_bytes_per_s == model.scaleup.each_way_bytes_per_s


def test_an_edited_file_is_read_again(mine: Path) -> None:
    before = get_device(str(mine))
    mine.write_text(mine.read_text(encoding="utf-8").replace('"700 W"', '"650 W"'), encoding="utf-8")
    os.utime(mine, ns=(1, 1))
    assert (before.power_limit_w, get_device(str(mine)).power_limit_w) == (700, 650)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("power_limit_w =", "power_limit_watts =", "unknown key power_limit_watts; did you mean power_limit_w"),
        ("dense_fp8_flops_per_s", "dense_fp9_flops_per_s", "unknown key dense_fp9_flops_per_s"),
        ('"700 W", from = "sheet", at', '"700 W", at', "power_limit_w names no source"),
        ('"700 W", from = "sheet"', '"700 W", from = "elsewhere"', "power_limit_w names no source"),
        ('"700 W", from', '"700 GB", from', "asks for another unit"),
        ('"700 W", from', "700, from", "write the unit too"),
        ('"700 W", from', '"-700 W", from', "not a number between"),
        ('"700 W", from', '"0 W", from', "not a number between"),
        ('"700 W", from', '"7000000 W", from', "not a number between"),
        ('"700 W", from', '"many W", from', "cannot read"),
        ('scaleup_topology = { value = "switch"', 'scaleup_topology = { value = "pasta"', "'pasta' is none of switch"),
        ("scaleup_has_reduction = { value = true", "scaleup_has_reduction = { value = 1.0", "scaleup_has_reduction"),
        ("{ value = 132, from", "{ value = 132.5, from", "write a whole number"),
        ('kind = "gpu"', 'kind = "toaster"', "'toaster' is none of gpu"),
        ('vendor = "Me"', "", 'say vendor = "…"'),
        ('title = "Where the figures come from"', "", 'needs title = "…"'),
        ('retrieved = "2026-11"', "retrieved = 2026", "retrieved: write it in quotes"),
        ('retrieved = "2026-11"', 'author = "me"', "unknown key author"),
        ("[facts]", "[fact]", "unknown key fact; did you mean facts"),
        ("num_compute_units = {", "num_compute_units = 132 #", "write { value"),
        ('title = "My', 'title = "My "', "not valid TOML"),
        ('"700 W", from', "[], from", "power_limit_w: value: got []"),
        ('"700 W", from', "2026-11-23, from", "power_limit_w: value: got"),
        ("{ value = 132, from", "{ value = " + "9" * 400 + ", from", "a number of 400 digits"),
        ('from = "sheet", at', "from = [], at", "from: got []; write it in quotes"),
        ('from = "sheet", at', 'also = [5], from = "sheet", at', "also: got [5]"),
        ("[facts]", "a = " + "[" * 1000 + "\n[facts]", "too deeply nested"),
        ('title = "My', 'conditions = 5\ntitle = "My', "write a table [conditions]"),
        ('title = "My', 'calibration = 5\ntitle = "My', "write tables [[calibration]]"),
        ("[facts]", "[[calibration]]\nop = []\n[facts]", "calibration op: got []"),
    ],
)
def test_a_file_that_cannot_be_trusted_is_refused_in_one_sentence(
    mine: Path, old: str, new: str, complaint: str
) -> None:
    text = mine.read_text(encoding="utf-8")
    assert old in text
    mine.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactError, match=r"mine\.toml") as caught:
        get_device(str(mine))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_fact_is_named(mine: Path) -> None:
    lines = mine.read_text(encoding="utf-8").splitlines()
    mine.write_text("\n".join(x for x in lines if not x.startswith("idle_power_w")), encoding="utf-8")
    with pytest.raises(FactError, match="lacks idle_power_w"):
        get_device(str(mine))


def test_a_missing_file_is_said() -> None:
    with pytest.raises(FactError, match="no such file"):
        get_device("nowhere.toml")


def test_leonardo_s_gpu_by_hand():
    """124 processors of 2048 multiply-adds in 16 bits a cycle; three neighbours; a quarter of a node's 400 Gb/s."""
    device = get_device("a100-sxm-64gb")
    assert device.dense_flops_per_s["fp16"] == pytest.approx(124 * 2 * 1024 * 1.41e9, rel=1e-3)
    assert device.scaleup.topology == "mesh"
    assert device.scaleup.each_way_bytes_per_s == 3 * 4 * 25e9
    assert device.scaleout.each_way_bytes_per_s == 400e9 / 8 / device.devices_per_node

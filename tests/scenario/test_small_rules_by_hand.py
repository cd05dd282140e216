"""Small rules of answers: sizes nobody says, flags as they are typed, bytes of kernels, memory at its very limit."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.fleet.hours.shift import Hours
from orrery.scenario import cold_start, host_attention, speech
from orrery.scenario.fields_kernel import KERNEL_BY_NAME
from orrery.scenario.fleet import steady_regions
from orrery.scenario.fleet.by_hour import Clock
from orrery.scenario.jobs import JOBS
from orrery.scenario.kernel import fused
from orrery.scenario.kernel.operators import OPERATORS
from orrery.scenario.schema import read_scenario
from orrery.scenario.search import images
from orrery.scenario.setting import Setting

# --- what nobody says

ONE_OF = {"batch": 1, "num_heads": 1, "tp": 1, "ep": 1}
OWN = {
    "taps": 9,  # a window of 3 x 3
    "gates": 4,  # of an LSTM's cell
    "key_bits": 32,
    "entries_per_row": 8,
    "rows_per_load": 128,
    "query_tokens": 512,  # a chunk of a prompt
    "draws": 64,
    "m": 64,  # rows of an instruction of Hopper, and its depth in 16 bits
    "k": 16,
}
HEADS = {"attention": 128, "tree-recurrence": 64, "latent-attention": 0}
"""Width of a head: of most models with attention, of most with recurrence; and as the model has it."""


def test_sizes_of_a_kernel_that_nobody_says():
    """Of most there is one or none; others are listed."""
    for operator in OPERATORS.values():
        for name, size in operator.sizes.items():
            if size is not None:
                said = HEADS[operator.name] if name == "head_size" else {**ONE_OF, **OWN}.get(name, 0)
                assert size == said, f"{operator.name}: {name}"


def test_what_is_assumed_of_a_kernel_is_its_example():
    assert float(KERNEL_BY_NAME["meeting_s"].example) == fused.MEETING_S == 1.5e-6
    assert fused.MEETING_RANGE_S == (1e-6, 3e-6)


ELSEWHERE = {("will-it-fit.md", "concurrency"), ("agents.md", "sessions_per_hour")}
"""Numbers of a form that stand for another question than the first one of its page."""


def test_forms_open_with_the_numbers_of_their_page():
    checked = set()
    for job in JOBS:
        page = (Path(__file__).resolve().parents[2] / "docs" / job.page).read_text("utf-8")
        for name, value in (job.example or {}).items():
            flag = f"--{name.replace('_', '-')} "
            if flag in page and type(value) in (int, float) and (job.page, name) not in ELSEWHERE:
                assert f"{flag}{value} " in page.replace("\n", " "), f"{job.page}: {name} = {value}"
                checked.add(name)
    assert {"ulysses_degree", "max_devices", "global_batch", "cold_start_s", "buy_usd"} <= checked


# --- flags as they are typed


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (5.0, ["5"]),
        (0.1, ["0.1"]),
        (1e9, ["1e+09"]),
        (1 / 3, ["0.3333333333333333"]),  # six digits would be another number
        (1234567.0, ["1234567.0"]),
        (12, ["12"]),
    ],
)
def test_a_number_is_typed_as_short_as_it_stays_itself(value, words):
    setting = Setting(name="rate_per_s", kind="number", help="", example="1")
    assert setting.typed(value) == ["--rate-per-s", *words]
    assert float(setting.typed(value)[1]) == value


def test_switches_lists_and_nothing_as_they_are_typed():
    setting = Setting(name="cuda_graph", kind="switch", help="", example="true")
    assert (setting.typed(True), setting.typed(False)) == (["--cuda-graph"], ["--no-cuda-graph"])
    assert setting.typed(("a", 2)) == ["--cuda-graph", "a", "--cuda-graph", "2"]
    assert setting.typed(None) == []


# --- hours and regions


def test_a_run_has_at_least_the_hour_in_which_it_starts():
    assert Clock(start_s=3600.0)._hours(0.0).tolist() == [0.0, 0.0]
    assert Clock(start_s=7200.0)._hours(1e-7).tolist() == [0.0, 1e-7]


@pytest.mark.parametrize(
    ("purchases", "is_paid"), [(("owned", "owned"), True), (("owned", "rented"), False), (("rented", "rented"), False)]
)
def test_electricity_of_a_region_is_paid_where_all_its_machines_are_owned(monkeypatch, purchases, is_paid):
    """Those of another region do not count; power is that of devices and hosts."""
    asked = {}

    def steady_by_hour(hours, pue, clock, lengths_s, power_w, is_paid):
        asked.update(pue=pue, offset_s=clock.offset_s, power_w=power_w.tolist(), is_paid=is_paid)
        return "priced"

    monkeypatch.setattr(steady_regions, "steady_by_hour", steady_by_hour)
    terms = [SimpleNamespace(purchase=p, region="here") for p in purchases]
    terms.append(SimpleNamespace(purchase="rented", region="there"))
    hours = Hours(length_s=3600.0, base_w=np.zeros(24), usd_per_j=np.zeros(24), carbon_g=np.zeros(24))
    here = SimpleNamespace(name="here", hours=hours, pue_ratio=1.5, utc_offset_s=60.0)
    there = SimpleNamespace(name="there", hours=None)
    found = SimpleNamespace(regions=(here, there), start_s=0.0)
    each = [SimpleNamespace(power_w=10.0, host_power_w=5.0), SimpleNamespace(power_w=20.0, host_power_w=0.0)]
    by_region = SimpleNamespace(by_region={"here": each})
    priced = steady_regions.regional_by_hour(SimpleNamespace(terms=terms), found, by_region, np.ones(2))
    assert priced == {"here": "priced"}
    assert asked == {"pue": 1.5, "offset_s": 60.0, "power_w": [15.0, 20.0], "is_paid": is_paid}


# --- memory and bytes


@pytest.mark.parametrize(("more_bytes", "is_lacking"), [(-8.0, False), (0.0, False), (8.0, True)])
def test_two_layers_lie_on_a_device_at_once(monkeypatch, more_bytes, is_lacking):
    """Of 4 layers of 16 GiB each, two take 32 GiB; a device whose usable part is just that holds them."""
    have = host_attention.USABLE_FRAC * 2.0**36
    cut = SimpleNamespace(weight_bytes=4 * (have / host_attention.BUFFERED_LAYERS + more_bytes), num_layers=4)
    monkeypatch.setattr(host_attention, "shard", lambda d: cut)
    device = SimpleNamespace(memory_capacity_bytes=2.0**36)
    lacking = host_attention._lacking(SimpleNamespace(cluster=SimpleNamespace(device=device)))
    assert host_attention.BUFFERED_LAYERS == 2
    assert (lacking is not None) is is_lacking
    if lacking:
        assert (lacking.need, lacking.have) == (have + 16.0, have)


def test_energy_of_a_network_counts_the_bytes_of_each_kernel(monkeypatch):
    """A kernel's own bytes where it states them; of a product of m, n, k those of its three matrices."""
    asked = {}

    def energy_j(device, format, times, flops, moved):
        asked.update(times=times.tolist(), flops=flops.tolist(), moved=moved.tolist())
        return moved

    table = SimpleNamespace(table=np.ones((1, 1)), constant=0.0)
    monkeypatch.setattr(images, "energy_j", energy_j)
    monkeypatch.setattr(images, "_table", lambda plan, values: table)
    monkeypatch.setattr(images, "_by_block", lambda plan, values: values)
    kernels = [
        SimpleNamespace(flops=1.0, moved_bytes=7.0, m=2, n=3, k=4, num_parameters=1),
        SimpleNamespace(flops=48.0, moved_bytes=0.0, m=2, n=3, k=4, num_parameters=12),
    ]
    plan = SimpleNamespace(kernels=kernels, flops=np.ones(1), batch=1)
    made = SimpleNamespace(
        plan=plan, kernel_s=np.array([1.0, -1.0]), alone_s=lambda: np.ones(1), latency_s=lambda ways: np.ones(1)
    )
    found = images._metrics(made, SimpleNamespace())
    assert asked == {"times": [1.0, 0.0], "flops": [1.0, 48.0], "moved": [7.0, images.ELEMENT_BYTES * (8 + 12 + 6)]}
    assert found["memory"].table.tolist() == [[images.ELEMENT_BYTES]]


# --- notes of speech


@pytest.mark.parametrize(
    ("asked", "beams", "is_said"),
    [({}, 5, True), ({}, 1, False), ({"num_beams": 5}, 5, False), ({"num_beams": 1}, 1, False)],
)
def test_beams_that_nobody_asked_for_are_said(asked, beams, is_said):
    runtime = SimpleNamespace(name="whisper", spread=1.0)
    notes = speech._notes(read_scenario(asked), runtime, SimpleNamespace(beams=beams, tokens=100.0))
    assert ("num_beams = 5, as whisper takes" in notes) is is_said
    assert "engine = whisper" in notes
    assert len(notes) == 3 + is_said


# --- a start


@pytest.mark.parametrize(
    ("has_graphs", "eager", "num_captured"), [(True, None, 24), (True, False, 24), (True, True, 0), (False, None, 0)]
)
def test_an_engine_captures_up_to_twice_its_sequences(monkeypatch, has_graphs, eager, num_captured):
    """Twice 12 sequences, and no more than graphs are made for."""
    monkeypatch.setattr(cold_start, "graph_seqs", lambda deployment: 512)
    monkeypatch.setattr(cold_start, "max_num_seqs", lambda deployment: 12)
    monkeypatch.setattr(cold_start, "num_captured", lambda largest: largest)
    deployment = SimpleNamespace(
        engine=SimpleNamespace(has_cuda_graphs=has_graphs, name="vllm"),
        model=SimpleNamespace(num_layers=3),
        cluster=SimpleNamespace(device=SimpleNamespace(host_time_ratio=2.0)),
    )
    given = {} if eager is None else {"enforce_eager": eager}
    found = cold_start.engine_of(read_scenario(given), deployment)
    assert (found.num_captured, found.compiles, found.num_layers) == (num_captured, not eager, 3)
    assert found.host_time_ratio == 2.0
    monkeypatch.setattr(cold_start, "graph_seqs", lambda deployment: 8)
    assert cold_start.engine_of(read_scenario(given), deployment).num_captured == (8 if num_captured else 0)

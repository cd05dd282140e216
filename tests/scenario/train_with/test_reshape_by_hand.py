"""Checkpoints under another layout: every time, degree and loss worked out by hand from fakes of round numbers."""

from types import SimpleNamespace

import pytest

from orrery.base.errors import ScenarioError
from orrery.scenario.schema import read_scenario
from orrery.scenario.train_with import reshape
from orrery.scenario.train_with.changed import Changed

ASKED = {
    "checkpoint": "reshape",
    "reshape_to": "tp=4,pp=2",
    "repair_s": 1000.0,
    "storage_bytes_per_s": 1e9,
    "pack_bytes_per_s": 2e9,
    "checkpoint_file_s": 0.5,
}


def changed(num_devices, num_nodes, pp, step_s, peak_bytes=1.0):
    """A billion parameters in 4 layers of 3 products; 23 tensors: (3 + 2) x 4 + 3."""
    model = SimpleNamespace(
        num_parameters=1e9, encoder=(), blocks=(SimpleNamespace(count=4, linears=("qkv", "up", "down")),)
    )
    return Changed(
        job=SimpleNamespace(model=model, cluster=SimpleNamespace(num_nodes=num_nodes)),
        layout=SimpleNamespace(num_devices=num_devices, tp=4, pp=pp, dp=num_devices // (4 * pp)),
        steps=SimpleNamespace(time_s=[step_s]),
        ranks=(SimpleNamespace(peak_bytes=0.5), SimpleNamespace(peak_bytes=peak_bytes)),
    )


PLAIN = changed(num_devices=16, num_nodes=2, pp=1, step_s=10.0)


@pytest.fixture
def reshaped(monkeypatch):
    """Reshape ``PLAIN`` to 8 devices of one node in two stages, which have room for one byte."""

    def make(step_s=16.0, peak_bytes=1.0, **asked):
        after = changed(num_devices=8, num_nodes=1, pp=2, step_s=step_s, peak_bytes=peak_bytes)
        monkeypatch.setattr(reshape, "_reshaped", lambda scenario, plain: after)
        monkeypatch.setattr(reshape, "room_bytes", lambda job: 1.0)
        given = {name: value for name, value in (ASKED | asked).items() if value is not None}
        return reshape.with_reshape(read_scenario(given), PLAIN)

    return make


def test_times_by_hand(reshaped):
    """14 GB are saved by 2 nodes (7 s) and 16 processes at 2 GB/s, a file of 0.5 s each; 26 GB pass through one node
    and 8 processes, which open 16 shards and 3 x 23 atoms; 12 GB are loaded, and each process opens half of all atoms.
    """
    save, convert, load, alone = reshaped().tables[0].rows
    assert save["time_s"] == pytest.approx(7 + 14 / 16 / 2 + 0.5)
    assert convert["time_s"] == pytest.approx(26 + 26 / 8 / 2 + (16 + 69) / 8 * 0.5)
    assert load["time_s"] == pytest.approx(12 + 12 / 8 / 2 + 69 / 2 * 0.5)
    assert alone["time_s"] == pytest.approx(26 + 26 / 2 + (16 + 69) * 0.5)
    assert [row["step"] for row in (save, convert, load, alone)][3] == "convert by one process"


GONE_S = 32.9375 + 30.0
"""Convert and load on the nodes that are left, as above."""

BACK_S = (14 + 14 / 8 / 2 + 0.5) + (13 + 26 / 16 / 2 + (8 + 69) / 16 * 0.5) + (6 + 12 / 16 / 2 + 69 * 0.5)
"""To the full layout: 8 processes save, 16 on two nodes convert and load all atoms each."""

LOAD_S = 6 + 12 / 16 / 2 + 69 * 0.5


def test_going_on_with_fewer_nodes_by_hand(reshaped):
    found = reshaped()
    wait, go_on = found.tables[1].rows
    assert (wait["lost_s"], wait["speed_meanwhile_frac"]) == (pytest.approx(1000 + LOAD_S), 0.0)
    lost_s = GONE_S + 0.375 * (1000 - GONE_S) + BACK_S
    assert (go_on["lost_s"], go_on["speed_meanwhile_frac"]) == (pytest.approx(lost_s), 0.625)
    assert go_on["break_even_repair_s"] == pytest.approx(GONE_S + (BACK_S - LOAD_S) / 0.625)
    assert go_on["after_a_loss"] == "go on as tp4 pp2 dp1"
    assert found.outage_lost_s == pytest.approx(lost_s - LOAD_S)
    assert found.notes == ()


def test_fewer_nodes_are_never_faster_than_all(reshaped):
    go_on = reshaped(step_s=5.0).tables[1].rows[1]
    assert go_on["speed_meanwhile_frac"] == 1.0
    assert go_on["lost_s"] == pytest.approx(GONE_S + BACK_S)


def test_what_does_not_fit_waits(reshaped):
    found = reshaped(peak_bytes=1.01)
    go_on = found.tables[1].rows[1]
    assert go_on["lost_s"] == pytest.approx(1000 + BACK_S)
    assert go_on["break_even_repair_s"] == "none"
    assert found.notes[-1].endswith("does not fit its devices; nothing is trained until the repair")


def test_without_a_repair_nothing_is_lost_and_what_nobody_says_is_assumed(reshaped):
    found = reshaped(repair_s=None, pack_bytes_per_s=None, checkpoint_file_s=None)
    assert len(found.tables) == 1
    assert found.outage_lost_s is None
    assert found.notes == ("pack_bytes_per_s: 1e+09 (assumed)", "checkpoint_file_s: 0.005 (assumed)")
    assert found.tables[0].rows[0]["time_s"] == pytest.approx(7 + 14 / 16 + 0.005)
    free = reshaped(checkpoint_file_s=0.0).tables[0].rows[0]
    assert free["time_s"] == pytest.approx(7 + 14 / 16 / 2)


def test_degrees_as_they_are_written():
    assert reshape._degrees("tp=4, pp = 2,dp=1") == {"tp": 4, "pp": 2, "dp": 1}
    assert reshape._degrees("tp=65536") == {"tp": 65536}
    for wrong in ("tp=0", "tp=65537", "ep=2", "tp", "tp=2.5", "tp=2,"):
        with pytest.raises(ScenarioError, match="write DEGREE=N"):
            reshape._degrees(wrong)


@pytest.mark.parametrize(("most", "ranks"), [(12, 12), (11, 6), (6, 6), (5, 4), (1, 1), (0, 1)])
def test_the_batch_comes_out_over_the_data_ranks(most, ranks):
    """24 sequences in micro-batches of 2: 12 of them."""
    plain = SimpleNamespace(job=SimpleNamespace(global_batch=24), layout=SimpleNamespace(micro_batch=2))
    assert reshape._data_ranks(plain, most) == ranks

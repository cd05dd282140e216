"""Measured rows are rows of a measured table: orrery checks itself against them without more ado."""

from itertools import count

import numpy as np
import pytest

import orrery
from orrery.base.errors import ScenarioError
from orrery.calibrate.measure import quiet
from orrery.calibrate.truth import run as truth
from orrery.calibrate.truth.cases import (
    LONG,
    QUICK,
    Decode,
    Exchange,
    Load,
    Network,
    Prefill,
    Product,
    Server,
    drawn_products,
)
from orrery.calibrate.truth.run import measure, write_configs
from orrery.calibrate.truth.transformer import transformer
from orrery.evidence.serving_simulated import traffic_of
from orrery.evidence.tables import read_table, table_text
from orrery.serving.workload import Workload

TINY = Network(name="tiny", hidden_size=32, num_layers=2, num_heads=4, num_kv_heads=2, ffn_size=64, vocab_size=100)
CASES = (
    Product(m=3, n=40, k=17),
    Prefill(network=TINY, prompt_tokens=9),
    Decode(network=TINY, batch_size=2, context_tokens=11),
    Exchange(message_bytes=4096),
    Server(network=TINY, input_tokens=20, output_tokens=6, range_ratio=0.45, num_requests=12).load(300.0),
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small measured table on disk, with the configs that it names."""
    folder = tmp_path_factory.mktemp("truth")
    write_configs([TINY], folder)
    done = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quiet, "LISTEN_S", 0.0)
        sampler = truth.listening(patience_s=0.05)
    rows = measure(
        CASES, device="intel-n150", configs=folder, rounds=2, quiet=sampler, on_progress=lambda *at: done.append(at)
    )
    assert done == [(i, 10) for i in range(1, 11)]
    path = folder / "measured.csv"
    path.write_text(table_text(rows))
    return path


def test_every_row_is_understood_and_predicted(table):
    report = orrery.check([str(table)])
    assert report.rows == len(CASES)
    assert not report.declined
    metrics = {group.metric for group in report.groups}
    assert {"time_s", "ttft_s", "tpot_s", "latency_s", "output_tokens_per_s", "ttft_s_p90"} <= metrics


def test_rows_say_what_ran_and_how_far_the_rounds_lay_apart(table):
    rows = read_table(table)
    assert rows.columns["kind"] == ["kernel", "serving", "serving", "collective", "serving"]
    assert (rows.numbers("spread_frac") >= 0).all()
    assert set(rows.columns["num_rounds"]) == {"2"}
    assert set(rows.columns["engine_version"]) == {np.__version__, ""}
    assert (rows.columns["engine"][0], rows.columns["library"][3]) == ("numpy", "tcp")
    assert all(n == "" or int(n) >= 1 for n in rows.columns["num_blas_threads"]), "blank where no OpenBLAS tells"
    measured = {"time_s": (0, 3), "ttft_s": (1, 4), "tpot_s": (2, 4), "requests_per_s": (4,)}
    assert all(rows.numbers(column)[row] > 0 for column, places in measured.items() for row in places)
    for column in ("weights_format", "activations_format", "kv_format"):
        assert rows.columns[column] == ["", "fp32", "fp32", "", "fp32"]


def test_rounds_are_interleaved_and_a_cell_is_their_median(monkeypatch, tmp_path, unheard):
    order, times = [], count(1)

    def fake(bench, case):
        order.append(case)
        return {"time_s": float(next(times))}

    monkeypatch.setattr(truth._Bench, "_product", fake)
    cases = drawn_products(2)
    first, second = measure(cases, device="here", configs=tmp_path, rounds=3)
    assert order == [*cases] * 3
    assert (first["time_s"], second["time_s"]) == (3.0, 4.0)
    assert first["spread_frac"] == pytest.approx((5 - 1) / 2 / 3)


def test_a_server_that_is_cut_off_has_no_figures(monkeypatch, tmp_path, unheard):
    monkeypatch.setattr(truth, "MAX_SCHEDULES_RATIO", 0.0)
    (row,) = measure(CASES[-1:], device="here", configs=tmp_path, rounds=2)
    assert row["num_rounds"] == 0
    assert "ttft_s" not in row


def test_nothing_to_run_is_refused(tmp_path):
    with pytest.raises(ScenarioError, match="rounds"):
        measure(CASES, device="here", configs=tmp_path, rounds=0)


@pytest.mark.parametrize("server", [*QUICK.servers, *LONG.servers])
def test_a_row_of_a_server_stands_for_the_very_requests_that_came(server):
    load = server.load(7.0)
    row = truth._open(load, truth.Path("."))
    message = Workload(
        mode="open",
        request_rate_per_s=row["request_rate_per_s"],
        num_requests=row["num_requests"],
        **{k: row[k] for k in ("input_tokens", "output_tokens", "input_tokens_std", "output_tokens_std")},
    )
    ours, theirs = load.requests(), traffic_of(None, message).requests
    for column in ("arrive_s", "input_tokens", "output_tokens"):
        np.testing.assert_array_equal(getattr(ours, column), getattr(theirs, column))
    assert ours.input_tokens.max() <= server.limits.max_num_batched_tokens


def test_more_requests_or_another_rate_leave_the_lengths_alone():
    load = QUICK.servers[0].load(5.0)
    fast = Load(server=load.server, request_rate_per_s=10.0).requests()
    np.testing.assert_array_equal(fast.input_tokens, load.requests().input_tokens)
    np.testing.assert_allclose(2 * fast.arrive_s, load.requests().arrive_s)


def test_drawn_products_cover_the_shapes_and_stay_what_they_are():
    drawn = drawn_products(400)
    assert drawn[:10] == QUICK.products == LONG.products[:10]
    sides = np.array([(p.n, p.k) for p in drawn])
    rows = np.array([p.m for p in drawn])
    assert (rows.min(), rows.max() > 400) == (1, True)
    assert 64 <= sides.min() < 80 < 3500 < sides.max() <= 4096
    odd = (sides % 16 != 0).all(axis=1)
    assert 0.1 < odd.mean() < 0.3
    assert not (sides[~odd] % 16).any()
    assert len(set(drawn)) > 390
    assert drawn_products(5, seed=1) != drawn[:5]


def test_every_network_of_the_suites_runs():
    for suite in (QUICK, LONG):
        for network in {s.network for s in (*suite.steps, *suite.servers)}:
            if network.hidden_size <= 512:
                assert transformer(network.config()).model.num_layers == network.num_layers
        sizes = [x.message_bytes for x in suite.exchanges]
        assert (sizes[0], sizes[-1]) == (1024, 1 << 24)
        assert sizes == sorted(set(sizes))
        assert all(size % 4 == 0 for size in sizes)

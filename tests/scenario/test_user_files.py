"""Files that users give: what they unpack to is bounded, and every refusal is a sentence."""

import contextlib
import gzip
import io
import time
import zipfile
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pytest

import orrery
from orrery.base import user_file
from orrery.base.errors import OrreryError, ScenarioError
from orrery.base.user_file import read_user_bytes, read_user_text
from orrery.base.user_text import parsed_json
from orrery.calibrate.runs.log import read_log
from orrery.catalog import trace_parquet
from orrery.catalog.devices import get_device
from orrery.catalog.trace_file import read_trace
from orrery.evidence.feed import file as feed_file
from orrery.evidence.feed.own import add_paper
from orrery.evidence.tables import read_table
from orrery.models.read import read_model
from orrery.reports.source import read_source
from orrery.scenario import simulate as simulation
from orrery.scenario import tensor_file
from orrery.scenario.expert_loads import read_loads as loads_of
from orrery.scenario.file import load_scenario
from orrery.scenario.tensor_file import tensors_in


def read_device(path: Path):
    return get_device(path)


def read_loads(path: Path):
    return loads_of(str(path))


def read_file(path: Path):
    return feed_file.read_file(path, date(2026, 11, 23))


def read_own(path: Path):
    return add_paper(path, Path("nowhere") / "library.sqlite")


def test_plain_and_gzipped_text_read_the_same(tmp_path: Path):
    (tmp_path / "a.csv").write_text("model,tp\nx,1\n")
    (tmp_path / "a.csv.gz").write_bytes(
        gzip.compress(b"model,tp\n") + gzip.compress(b"x,1\n")
    )  # two members are one file
    assert read_user_text(tmp_path / "a.csv.gz") == read_user_text(tmp_path / "a.csv") == "model,tp\nx,1\n"


@pytest.mark.parametrize("reader", [read_table, read_trace, read_log])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch, reader):
    monkeypatch.setattr(user_file, "MAX_BYTES", 100_000_000)
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as out:
        for _ in range(120):
            out.write(bytes(1_000_000))
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(ScenarioError, match=r"more than 100,000,000 bytes unpacked"):
        reader(bomb)


def test_the_bound_counts_unpacked_bytes(tmp_path: Path):
    path = tmp_path / "ten.gz"
    path.write_bytes(gzip.compress(b"0123456789" * 100))
    assert read_user_bytes(path, max_bytes=1000) == b"0123456789" * 100
    with pytest.raises(ScenarioError, match="more than 999 bytes"):
        read_user_bytes(path, max_bytes=999)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (gzip.compress(b"input_tokens,output_tokens\n1,2\n", mtime=0)[:-9], "damaged gzip"),
        (b"\x1f\x8bnonsense that is long enough", "damaged gzip"),
        (b"\xff\xfe\x00bad", "no UTF-8 text|neither text"),
    ],
    ids=["cut", "nonsense", "not text"],
)
@pytest.mark.parametrize("reader", [read_table, read_trace, read_log])
def test_damaged_files_are_refused_in_words(tmp_path: Path, reader, content, match):
    path = tmp_path / "damaged.csv"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=match):
        reader(path)


def test_missing_files_and_folders_are_refused_in_words(tmp_path: Path):
    with pytest.raises(ScenarioError, match="There is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ScenarioError, match="is a folder"):
        read_table(tmp_path)


@pytest.mark.parametrize(
    "reader", [read_model, load_scenario, read_device, read_source, read_loads, read_file, read_own]
)
def test_every_reader_is_bounded_and_says_what_is_wrong(tmp_path: Path, monkeypatch, reader):
    """Whatever the file: it is too large, damaged, no text, nested without end, or not there."""
    monkeypatch.setattr(user_file, "MAX_BYTES", 2_000_000)
    path = tmp_path / "given.toml"
    for content in (
        gzip.compress(b"[" * 30_000_000),
        gzip.compress(b"a = 1")[:-6],
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"{" * 100_000,
        b"a = " + b"[" * 5_000,
        b"9" * 5_000,
        b'a = "' + b"x" * 300_000,
        b".".join([b"a"] * 20_000) + b" = 1",
        b"",
        b"\0",
    ):
        path.write_bytes(content)
        begun_s = time.monotonic()
        with contextlib.suppress(OrreryError):
            reader(path)
        assert time.monotonic() - begun_s < 5.0, content[:20]
    for missing in (tmp_path / "none.toml", tmp_path, tmp_path / ("x" * 300), Path("a\0b.toml")):
        with pytest.raises(OrreryError):
            reader(missing)


def test_a_kilobyte_of_parquet_may_hold_a_billion_rows(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(trace_parquet, "MAX_ROWS", 100_000)
    monkeypatch.setattr(trace_parquet, "MAX_BYTES", 1_000_000)
    path = tmp_path / "trace.parquet"
    for rows, match in (
        ("SELECT 1 AS input_tokens, 2 AS output_tokens FROM range(200000)", "200,000 rows are too many"),
        ("SELECT 1 AS input_tokens, repeat('x', 10000) AS session FROM range(900)", "holds 9,000,000 bytes"),
        ("SELECT [1, 2] AS input_tokens, 2 AS output_tokens FROM range(3)", "holds no plain values"),
    ):
        with duckdb.connect() as connection:
            connection.execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
        assert path.stat().st_size < 100_000
        with pytest.raises(ScenarioError, match=match):
            read_trace(path)


def test_a_key_that_stands_twice_is_found_quickly(tmp_path: Path):
    """In a header of many tensors, the last of which has the name of the one before."""
    names = [f'"{i}": 0' for i in range(100_000)] + ['"99999": 0']
    begun_s = time.monotonic()
    with pytest.raises(ValueError, match="'99999' stands twice"):
        parsed_json("{" + ", ".join(names) + "}", is_unique=True)
    assert time.monotonic() - begun_s < 5.0


def test_a_cell_without_an_end_and_many_equal_columns_are_refused(tmp_path: Path):
    path = tmp_path / "cell.csv"
    path.write_text("model\n" + "x" * 200_000 + "\n")
    with pytest.raises(ScenarioError, match="cannot be read as CSV text"):
        read_table(path)
    path.write_text("model,tp,model\n")
    with pytest.raises(ScenarioError, match="model is named twice"):
        read_table(path)
    path.write_text(",".join(["model"] * 30_000) + "\n")
    with pytest.raises(ScenarioError, match="30,000 columns"):
        read_table(path)


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(tensor_file, "MAX_BYTES", 50_000_000)
    path = tmp_path / "zeros.npz"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (15_000_000,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("w.npy", "w") as out:
        out.write(head.getvalue())
        for _ in range(60):
            out.write(bytes(1_000_000))
    with pytest.raises(ScenarioError, match="unpacks from"):
        list(tensors_in(path))


def test_a_shape_of_truths_is_no_shape(tmp_path: Path):
    path = tmp_path / "odd.npy"
    np.save(path, np.zeros((1, 64), np.float32))
    changed = path.read_bytes().replace(b"(1, 64), }   ", b"(True, 64), }")
    assert b"True, 64" in changed
    path.write_bytes(changed)
    with pytest.raises(ScenarioError, match=r"odd\.npy"):
        list(tensors_in(path))


def test_a_simulation_that_would_take_hours_is_refused_before_it_begins(monkeypatch):
    """200 requests of a million tokens are written in seconds; more than anybody waits for is refused."""
    monkeypatch.setattr(simulation, "warm_up", lambda service: pytest.fail("it has begun"))
    inputs = {"model": "llama-3.1-8b", "device": "h100-sxm", "max_model_len": 1_100_000, "rate": 1.0}
    with pytest.raises(ScenarioError, match=r"3,000,000 requests with 3e\+11 output tokens would take hours"):
        orrery.simulate(**inputs, input_tokens=10, output_tokens=100_000, num_requests=3_000_000)

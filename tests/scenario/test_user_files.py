"""Files that users give: what they unpack to is bounded, and every refusal is a sentence."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_bytes, read_user_text
from orrery.calibrate.runs.log import read_log
from orrery.catalog.trace_file import read_trace
from orrery.evidence.tables import read_table
from orrery.scenario.tensor_file import tensors_in


def test_plain_and_gzipped_text_read_the_same(tmp_path: Path):
    (tmp_path / "a.csv").write_text("model,tp\nx,1\n")
    (tmp_path / "a.csv.gz").write_bytes(
        gzip.compress(b"model,tp\n") + gzip.compress(b"x,1\n")
    )  # two members are one file
    assert read_user_text(tmp_path / "a.csv.gz") == read_user_text(tmp_path / "a.csv") == "model,tp\nx,1\n"


@pytest.mark.parametrize("reader", [read_table, read_trace, read_log])
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, reader):
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as out:
        for _ in range(600):
            out.write(bytes(1_000_000))
    assert bomb.stat().st_size < 2_000_000
    with pytest.raises(ScenarioError, match=r"more than 512,000,000 bytes unpacked"):
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


def test_a_cell_without_an_end_and_many_equal_columns_are_refused(tmp_path: Path):
    path = tmp_path / "cell.csv"
    path.write_text("model\n" + "x" * 200_000 + "\n")
    with pytest.raises(ScenarioError, match="cannot be read as CSV text"):
        read_table(path)
    path.write_text(",".join(["model"] * 30_000) + "\n")
    with pytest.raises(ScenarioError, match="named twice"):
        read_table(path)


def test_an_archive_that_unpacks_to_far_more_is_refused(tmp_path: Path):
    path = tmp_path / "zeros.npz"
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (150_000_000,)})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("w.npy", "w") as out:
        out.write(head.getvalue())
        for _ in range(600):
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

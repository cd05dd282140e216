"""Tensor files: what is in them comes out, and every way of being wrong is one message."""

import contextlib
import io
import json
import math
import zipfile

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orrery.base.errors import ScenarioError
from orrery.scenario import tensor_file
from orrery.scenario.safetensors import read_header
from orrery.scenario.tensor_file import tensors_in

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}


def packed(header, data=b""):
    """A file of that header, as text or as an object."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype, shape, start, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def saved(tmp_path, content, name="model.safetensors"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def safetensors_of(arrays):
    """A file of (dtype, array) by name."""
    header, data = {}, b""
    for name, (dtype, array) in arrays.items():
        header[name] = entry(dtype, list(array.shape), len(data), len(data) + array.nbytes)
        data += array.tobytes()
    return packed(header, data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_comes_out_as_another_library_reads_it(tmp_path, dtype):
    rng = np.random.default_rng(0)
    kind = np.dtype(DTYPES[dtype])
    array = np.frombuffer(rng.integers(0, 256, 48 * kind.itemsize, dtype=np.uint8).tobytes(), dtype=kind)
    before = np.arange(3, dtype=np.uint8)  # so that what follows is not aligned
    (_, found) = tensors_in(saved(tmp_path, safetensors_of({"x": ("U8", before), "w": (dtype, array.reshape(6, 8))})))
    numbers = found.read()
    assert (found.name, found.shape, found.dtype, numbers.shape) == ("w", (6, 8), dtype, (6, 8))
    assert numbers.dtype.kind == "f"
    assert numbers.flags.c_contiguous
    np.testing.assert_array_equal(numbers.reshape(-1), array.astype(numbers.dtype))


def test_whole_numbers_beyond_fp32_keep_all_their_digits(tmp_path):
    array = np.array([2**40 + 1, -3], dtype=np.int64)
    (found,) = tensors_in(saved(tmp_path, safetensors_of({"n": ("I64", array)})))
    assert found.read().tolist() == [2.0**40 + 1, -3.0]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3, 4)])
def test_scalars_and_empty_tensors_have_their_shape(tmp_path, shape):
    array = np.ones(shape, dtype=np.float32)
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array)
    for path in (saved(tmp_path, safetensors_of({"x": ("F32", array)})), tmp_path / "x.npy", tmp_path / "x.npz"):
        (found,) = tensors_in(path)
        assert found.read().shape == shape
        assert found.num_elements == math.prod(shape)


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [">f4", "<f2", "f8", ">i2", "u1"])
def test_arrays_of_numpy_come_out_whatever_their_order_of_bytes_and_axes(tmp_path, save, dtype, monkeypatch):
    monkeypatch.setattr(tensor_file, "PIECE_ELEMENTS", 7)
    array = np.arange(60).reshape(5, 12).astype(dtype)
    for order in ("C", "F"):
        path = tmp_path / ("x.npy" if save is np.save else "x.npz")
        save(path, np.asarray(array, order=order))
        numbers = tensors_in(path)[0].read()
        assert numbers.flags.c_contiguous
        assert numbers.dtype.isnative
        np.testing.assert_array_equal(numbers, array.astype(np.float64))


def test_large_tensors_are_decoded_in_pieces_into_a_file(tmp_path, monkeypatch):
    array = np.random.default_rng(1).standard_normal((64, 33)).astype(ml_dtypes.bfloat16)
    path = saved(tmp_path, safetensors_of({"w": ("BF16", array)}))
    np.savez_compressed(tmp_path / "w.npz", w=array.astype(np.float32))
    monkeypatch.setattr(tensor_file, "IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(tensor_file, "PIECE_ELEMENTS", 50)
    for file in (path, tmp_path / "w.npz"):
        numbers = tensors_in(file)[0].read()
        assert isinstance(numbers, np.memmap)
        np.testing.assert_array_equal(numbers, array.astype(np.float32))


def test_what_lies_on_disk_as_floats_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((4, 4), dtype=np.float16))
    numbers = tensors_in(tmp_path / "x.npy")[0].read()
    base = numbers
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_every_tensor_is_found_whatever_order_they_lie_in(tmp_path):
    header = {"late": entry("F32", [2], 4, 12), "__metadata__": {"format": "pt"}, "early": entry("F32", [1], 0, 4)}
    path = saved(tmp_path, packed(header, np.array([1, 2, 3], dtype="<f4").tobytes()))
    assert {t.name: t.read().tolist() for t in tensors_in(path)} == {"late": [2.0, 3.0], "early": [1.0]}


ONE = entry("F32", [2], 0, 8)
EIGHT = bytes(8)
WRONG = {
    "empty": (b"", "0 bytes"),
    "length alone": ((5).to_bytes(8, "little"), "header is said to have 5 bytes"),
    "length beyond the file": ((1000).to_bytes(8, "little") + b"{}", "1000 bytes"),
    "a huge length": ((2**63).to_bytes(8, "little") + b"{}", "header is said to have"),
    "no length": ((0).to_bytes(8, "little") + b"{}", "header is said to have 0"),
    "no JSON": (packed(b"{'x': 1}"), "no JSON"),
    "no UTF-8": (packed(b'{"\xff": 1}'), "no JSON"),
    "nested without end": (packed(b"[" * 100_000), "no JSON"),
    "a list": (packed(b"[1, 2]"), "JSON list"),
    "a name twice": (packed(b'{"x": {}, "x": {}}'), "'x' stands twice"),
    "a number for an entry": (packed({"x": 3}), "has dtype, shape and data_offsets"),
    "no dtype": (packed({"x": {"shape": [2], "data_offsets": [0, 8]}}, EIGHT), "has dtype, shape and data_offsets"),
    "a field too many": (packed({"x": ONE | {"order": "F"}}, EIGHT), "has dtype, shape and data_offsets"),
    "dtype is a number": (packed({"x": ONE | {"dtype": 4}}, EIGHT), "dtype of 'x'"),
    "shape is a number": (packed({"x": ONE | {"shape": 2}}, EIGHT), "shape of 'x'"),
    "negative shape": (packed({"x": ONE | {"shape": [-2]}}, EIGHT), "shape of 'x'"),
    "fractional shape": (packed({"x": ONE | {"shape": [2.0]}}, EIGHT), "shape of 'x'"),
    "shape of truth values": (packed({"x": ONE | {"shape": [True, 2]}}, EIGHT), "shape of 'x'"),
    "too many axes": (packed({"x": ONE | {"shape": [1] * 40 + [2]}}, EIGHT), "shape of 'x'"),
    "one offset": (packed({"x": ONE | {"data_offsets": [0]}}, EIGHT), "lies at"),
    "offsets the wrong way": (packed({"x": ONE | {"data_offsets": [8, 0]}}, EIGHT), "lies at"),
    "negative offsets": (packed({"x": ONE | {"data_offsets": [-8, 0]}}, EIGHT), "lies at"),
    "truncated": (packed({"x": ONE}, EIGHT[:7]), "lies at"),
    "too few bytes": (packed({"x": ONE | {"shape": [3]}}, EIGHT), "8 bytes for a shape of [3]"),
    "a shape beyond counting": (packed({"x": ONE | {"shape": [2**62, 2**62]}}, EIGHT), "8 bytes for a shape"),
    "overlap": (packed({"x": ONE, "y": entry("F32", [1], 4, 8)}, EIGHT), "4 bytes are shared between 'x' and 'y'"),
    "a hole": (packed({"x": ONE, "y": entry("F32", [1], 12, 16)}, bytes(16)), "4 bytes lie between 'x' and 'y'"),
    "bytes left over": (packed({"x": ONE}, bytes(9)), "1 bytes follow 'x'"),
    "metadata of numbers": (packed({"__metadata__": {"n": 1}, "x": ONE}, EIGHT), "__metadata__"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_header_that_cannot_be_trusted_is_refused(tmp_path, case):
    content, words = WRONG[case]
    with pytest.raises(ScenarioError, match="can be trusted") as refused:
        tensors_in(saved(tmp_path, content))
    assert words in str(refused.value)


def test_a_header_of_more_than_a_hundred_megabytes_is_refused(tmp_path):
    path = tmp_path / "big.safetensors"
    with path.open("wb") as file:
        file.write((100_000_001).to_bytes(8, "little"))
        file.truncate(200_000_000)  # a sparse file
    with pytest.raises(ScenarioError, match="100000001 bytes"):
        tensors_in(path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_give_tensors_or_one_message(tmp_path, data):
    """Whatever bytes are changed, added or cut: either every tensor can be read, or there is one message."""
    kind = data.draw(st.sampled_from(["safetensors", "npy", "npz"]))
    good = GOOD[kind]
    cut = data.draw(st.integers(0, len(good)))
    content = bytearray(good[:cut] if data.draw(st.booleans()) else good)
    for at, value in data.draw(st.lists(st.tuples(st.integers(0, len(good)), st.integers(0, 255)), max_size=6)):
        if at < len(content):
            content[at] = value
    with contextlib.suppress(ScenarioError):
        for tensor in tensors_in(saved(tmp_path, bytes(content), f"x.{kind}")):
            if tensor.num_elements < 10_000:
                assert tensor.read().shape == tensor.shape


def _npy():
    out = io.BytesIO()
    np.save(out, np.arange(6, dtype=np.float32).reshape(2, 3))
    return out.getvalue()


def _npz():
    out = io.BytesIO()
    np.savez_compressed(out, a=np.arange(6, dtype=np.float32), b=np.ones((2, 2), dtype=np.int8))
    return out.getvalue()


GOOD = {
    "npy": _npy(),
    "npz": _npz(),
    "safetensors": safetensors_of(
        {"a": ("F32", np.arange(4, dtype="<f4")), "b": ("BF16", np.ones((2, 2), dtype=ml_dtypes.bfloat16))}
    ),
}


def test_dtypes_that_nobody_reads_are_declined_and_the_rest_is_read(tmp_path):
    header = {"odd": entry("F4", [8], 0, 4), "flags": entry("BOOL", [4], 4, 8), "w": entry("F32", [1], 8, 12)}
    found = {t.name: t for t in tensors_in(saved(tmp_path, packed(header, bytes(12))))}
    assert found["w"].read().tolist() == [0.0]
    for name in ("odd", "flags"):
        with pytest.raises(ScenarioError, match="is not read"):
            found[name].read()


@pytest.mark.parametrize(
    "array", [np.array([{}], dtype=object), np.array(["a"]), np.array([1j]), np.array([True]), np.array([(1,)], "i4,")]
)
def test_arrays_of_anything_but_real_numbers_are_declined_unopened(tmp_path, array):
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    np.savez(tmp_path / "x.npz", x=array)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(ScenarioError, match=r"no real numbers|never unpacked"):
            tensors_in(tmp_path / name)[0].read()


def test_truncated_and_foreign_files_are_refused(tmp_path):
    for name, content, words in (
        ("x.npy", GOOD["npy"][:-1], "ends at"),
        ("x.npy", b"\x93NUMPY\x03\x00", "holds records"),
        ("x.npy", b"hello", "no .npy array"),
        ("x.npz", b"hello", "no .npz archive"),
        ("x.npz", _empty_zip(), "holds no tensor"),
        ("x.safetensors", packed({}), "holds no tensor"),
        ("x.pt", b"", "end in .npy, .npz, .safetensors"),
    ):
        with pytest.raises(ScenarioError, match=words):
            tensors_in(saved(tmp_path, content, name))
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        tensors_in(tmp_path / "none.npy")
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        read_header(tmp_path / "none.safetensors")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(ScenarioError, match="is a folder"):
        tensors_in(tmp_path / "folder.npy")


def _empty_zip():
    out = io.BytesIO()
    zipfile.ZipFile(out, "w").close()
    return out.getvalue()

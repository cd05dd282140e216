"""Arrays of .npy and .npz files; the first byte says which."""

import io
from pathlib import Path

import numpy as np

from orrery.base.errors import OrreryError
from orrery.scenario.tensor_file import tensors_in


def saved(save: object, *arrays: np.ndarray) -> bytes:
    """What numpy writes."""
    out = io.BytesIO()
    save(out, *arrays)
    return out.getvalue()


NAME = "array.npy"
SMALL = np.arange(6, dtype=np.float32).reshape(2, 3)
SEEDS = (
    saved(np.save, SMALL),
    saved(np.save, np.asfortranarray(SMALL.astype(np.int16))),
    saved(np.save, np.float64(1.0)),
    saved(np.savez, SMALL, SMALL.astype(">f8")),
    saved(np.savez_compressed, SMALL),
)
WORDS = (
    b"'<f4'",
    b"'|O'",
    b"'<U3'",
    b"[('a', '<f4')]",
    b"(True, 3)",
    b"(-1,)",
    b"(2, 3)",
    b"()",
    b"True",
    b"1j",
    b"9" * 20,
    b"\x93NUMPY\x02\x00",
    b"\x93NUMPY\x03\x00",
    b"PK\x03\x04",
    b"PK\x01\x02",
    b".npy",
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """Every tensor, where it is small."""
    with path.open("rb") as file:
        is_archive = file.read(2) == b"PK"
    if is_archive:
        path = path.rename(path.with_suffix(".npz"))
    for tensor in tensors_in(path):
        if tensor.num_elements < 100_000:
            tensor.read()

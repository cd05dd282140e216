"""Shards and atoms as .npz files: one file a rank or a kind of state, there completely or not at all."""

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.reshape.checkpoint import Atoms, Shard
from orrery.training.reshape.parameter import Array
from orrery.training.reshape.shards import Rank

RANK_FILE = re.compile(r"stage(\d+)-tensor(\d+)-data(\d+)\.npz")


def write_shards(folder: Path, shards: Mapping[Rank, Shard]) -> None:
    """``stage0-tensor1-data2.npz`` for every rank."""
    for rank, shard in shards.items():
        _write(folder / f"stage{rank.stage}-tensor{rank.tensor}-data{rank.data}.npz", shard)


def read_shards(folder: Path) -> dict[Rank, Shard]:
    """All ranks' files of a folder."""
    found = {Rank(*map(int, m.groups())): _read(p) for p in folder.iterdir() if (m := RANK_FILE.fullmatch(p.name))}
    if not found:
        raise ScenarioError(f"{folder}: holds no shards; write them with write_shards.")
    return found


def write_atoms(folder: Path, atoms: Atoms) -> None:
    """``weight.npz`` and so on: one file for every kind of state."""
    for kind, states in atoms.items():
        _write(folder / f"{kind}.npz", states)


def read_atoms(folder: Path) -> dict[str, Shard]:
    """All kinds of state of a folder."""
    return {path.stem: _read(path) for path in sorted(folder.glob("*.npz"))}


def _write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Written beside its place, flushed to the disk, then renamed: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(cast(BinaryIO, file), allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read(path: Path) -> Shard:
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}

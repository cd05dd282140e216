"""Time of saving, converting and loading: bytes over the bandwidth of each node and of the storage as a whole.

    save = shards; convert = read shards + write atoms; load = read atoms

A step takes the longer of bytes / nodes / (bandwidth of a node) and bytes / (bandwidth of all storage). Without
sharing, every data rank reads all the atoms it needs, so dp copies leave the storage; with it each reads 1 / dp and the
rest comes over the network between devices. [lian-2024]
"""

import math
from dataclasses import dataclass

from orrery.base.errors import ScenarioError

ATOM_BYTES = 12.0
"""Bytes per parameter: weight and two moments of Adam, 32 bits each."""

SHARD_BYTES = 14.0
"""The same, and the 16-bit weights that mixed-precision training saves beside them. [rajbhandari-2020]"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where checkpoints go, and what joins the devices."""

    num_nodes: int
    node_bytes_per_s: float
    all_bytes_per_s: float = math.inf  # of the storage, whoever asks
    gather_bytes_per_s: float = math.inf  # into one device, from the others of its group

    def __post_init__(self) -> None:
        if self.num_nodes < 1 or min(self.node_bytes_per_s, self.all_bytes_per_s, self.gather_bytes_per_s) <= 0.0:
            raise ScenarioError(f"storage: {self}; write at least one node and bandwidths above zero.")

    def moved_s(self, moved_bytes: float) -> float:
        """Seconds to read or write so much, evenly from all nodes."""
        return max(moved_bytes / self.num_nodes / self.node_bytes_per_s, moved_bytes / self.all_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """Work of processes beside moving bytes: packing and unpacking their part, and opening files, one after the
    other.
    """

    num_source_ranks: int  # of the layout that saves, a file each
    num_target_ranks: int
    num_tensors: int  # whole parameters; an atom has a file for each of its three states
    num_target_stages: int = 1
    process_bytes_per_s: float = math.inf
    file_s: float = 0.0

    def seconds(self, moved_bytes: float, num_ranks: int, num_files: float) -> float:
        """Seconds of so many bytes and files, shared evenly by the ranks."""
        return moved_bytes / num_ranks / self.process_bytes_per_s + num_files / num_ranks * self.file_s

    def times(self, num_parameters: float) -> "ReshapeTimes":
        """Seconds of every step; every rank that loads opens all atoms of its stage."""
        atom_bytes, shard_bytes = ATOM_BYTES * num_parameters, SHARD_BYTES * num_parameters
        before, after, atoms = self.num_source_ranks, self.num_target_ranks, ATOM_STATES * self.num_tensors
        return ReshapeTimes(
            save_s=self.seconds(shard_bytes, before, before),
            convert_s=self.seconds(shard_bytes + atom_bytes, after, before + atoms),
            load_s=self.seconds(atom_bytes, after, after * atoms / self.num_target_stages),
        )


ATOM_STATES = 3
"""Files of one parameter: its weight and two moments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeTimes:
    """Seconds of every step."""

    save_s: float
    convert_s: float
    load_s: float

    @property
    def reshape_s(self) -> float:
        """From saved shards to training under the new layout."""
        return self.convert_s + self.load_s

    @property
    def all_s(self) -> float:
        """Save, convert and load."""
        return self.save_s + self.reshape_s


def reshape_times(
    num_parameters: float, source: Storage, target: Storage, *, dp: int = 1, shares_load: bool = True
) -> ReshapeTimes:
    """Steps for a model: saved by ``source``, converted and loaded by ``target``, whose layout has ``dp`` data ranks.

    States that ZeRO partitions need only one copy in all; pass dp = 1 then.
    """
    atom_bytes, shard_bytes = ATOM_BYTES * num_parameters, SHARD_BYTES * num_parameters
    copies = 1 if shares_load else dp
    gathered = atom_bytes * (dp - 1) / target.num_nodes / target.gather_bytes_per_s if shares_load else 0.0
    return ReshapeTimes(
        save_s=source.moved_s(shard_bytes),
        convert_s=target.moved_s(shard_bytes) + target.moved_s(atom_bytes),
        load_s=target.moved_s(copies * atom_bytes) + gathered,
    )


def sequential_convert_s(num_parameters: float, storage: Storage) -> float:
    """Conversion by one node alone."""
    moved_bytes = (SHARD_BYTES + ATOM_BYTES) * num_parameters
    return moved_bytes / min(storage.node_bytes_per_s, storage.all_bytes_per_s)

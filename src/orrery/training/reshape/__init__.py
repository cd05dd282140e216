"""Universal checkpoints: shards of one layout, turned into whole parameters, and loaded under another layout."""

from orrery.training.reshape.checkpoint import Shard, atoms, load, save
from orrery.training.reshape.files import read_atoms, read_shards, write_atoms, write_shards
from orrery.training.reshape.parameter import Parameter
from orrery.training.reshape.restart import Outage, Recovery, recovery
from orrery.training.reshape.shards import Rank, ShardLayout
from orrery.training.reshape.storage import ReshapeTimes, Storage, reshape_times

__all__ = [
    "Outage",
    "Parameter",
    "Rank",
    "Recovery",
    "ReshapeTimes",
    "Shard",
    "ShardLayout",
    "Storage",
    "atoms",
    "load",
    "read_atoms",
    "read_shards",
    "recovery",
    "reshape_times",
    "save",
    "write_atoms",
    "write_shards",
]

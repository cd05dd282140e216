"""A row of a training table that states everything, for tests that change some of its cells."""

from orrery.evidence.row import Row
from orrery.evidence.training_row import read_training_row

PLAIN = {
    "model": "meta-llama/Llama-2-7b-hf",
    "device": "h100-sxm",
    "num_devices": "16",
    "seq_len": "4096",
    "tp": "2",
    "pp": "1",
    "cp": "1",
    "micro_batch": "1",
    "global_batch": "64",
    "precision": "bf16",
    "framework": "nemo",
    "recompute": "none",
    "sharding": "zero1",
    "task": "pretrain",
}


def read(**cells):
    row = Row(PLAIN | cells)
    job, layout = read_training_row(row)
    return job, layout, row.assumed

"""A table of operations, as the experiment on memory mapping reads it."""

from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.execution.offload.program_table import read_program

NAME = "program.csv"
PLAIN = b"operation,out_bytes,reads,flops,weight_bytes\nin,100,,0,0\nup,400,in,8e4,200\ndown,100,up in,8e4,200\n"
SEEDS = (PLAIN, PLAIN.replace(b"\n", b"\r\n"), b"operation\n")
WORDS = (b'"', b",", b"\n", b"\x00", b"nan", b"1e999", b"in", b"up", b" ", b"-1", b"," * 3000)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """Every operation."""
    assert read_program(path)

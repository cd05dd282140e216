"""A measured table, as `orrery check` reads it."""

import gzip
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.evidence.tables import read_table

NAME = "table.csv"
PLAIN = (
    b"kind,model,device,num_devices,tp,input_tokens,output_tokens,concurrency,ttft_s,note\n"
    b'serving,llama-3.1-8b,h100-sxm,1,1,128,128,4,0.02,"a, b"\n'
)
SEEDS = (PLAIN, gzip.compress(PLAIN, mtime=0), b"a\n1\n", b"\xef\xbb\xbfkind,time_s\nkernel,1e-5\n")
WORDS = (b'"', b",", b"\n", b"\r", b"\x00", b"nan", b"1e999", b"kind", b"\x1f\x8b", b'""', b"," * 3000)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """The table, a column as numbers, one as words."""
    table = read_table(path)
    for column in tuple(table.columns)[:4]:
        table.words(column)
        try:
            table.numbers(column)
        except OrreryError:
            continue

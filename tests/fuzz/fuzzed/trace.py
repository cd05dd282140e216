"""A trace of requests in any of its formats."""

import gzip
from pathlib import Path

from orrery.base.errors import OrreryError
from orrery.catalog.trace_file import read_trace
from orrery.catalog.trace_requests import requests_of
from orrery.catalog.traces import stats

NAME = "trace.csv"
SEEDS = (
    b"arrival_s,input_tokens,output_tokens,session,client,priority\n0,5,5,a,x,1\n1.5,7,9,b,y,2\n",
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:04.0319600,3180,8\n",
    b"Timestamp,Model,Request tokens,Response tokens,Session ID\n5,ChatGPT,472,18,1\n45,ChatGPT,1087,230,1\n",
    b'{"timestamp": 0, "input_length": 6755, "output_length": 500, "hash_ids": [46, 47]}\n'
    b'{"timestamp": 27482, "input_length": 7319, "output_length": 490, "hash_ids": [46, 57]}\n',
    b'{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 521, "output_length": 65, "hash_ids": [1]}\n'
    b'{"chat_id": 2, "parent_chat_id": 1, "timestamp": 62.0, "input_length": 600, "output_length": 65, "hash_ids": [1]}\n',
    b'[{"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt", "value": "hi there"}]}]',
    gzip.compress(b"input_tokens,output_tokens\n1,2\n3,4\n", mtime=0),
)
WORDS = (
    b"nan",
    b"-0.0",
    b"1e300",
    b"1e-300",
    b"[]",
    b"{}",
    b"null",
    b"true",
    b"9" * 30,
    b"+00:00",
    b"0001-01-01",
    b"9999-12-31",
    b"\x1f\x8b",
    b"PAR1",
    b'"chat_id"',
    b"\xef\xbb\xbf",
    b"[" * 2000,
)
REFUSALS = (OrreryError,)


def read(path: Path) -> None:
    """The trace, its figures, and some requests of it."""
    trace = read_trace(path)
    stats(trace)
    requests_of(trace, count=min(3, len(trace.arrival_s)), rate=1.0)

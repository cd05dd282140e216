"""Trace files as their publishers write them; the format is told from the content, and errors name file and line.

=============  ==========  =============================================================================
ours           CSV         ``input_tokens,output_tokens`` and optional ``arrival_s,session,client,priority,origin``
ours           Parquet     the same columns
Azure LLM      CSV         ``TIMESTAMP,ContextTokens,GeneratedTokens``, a 7-digit fraction of a second
BurstGPT       CSV         ``Timestamp,Model,Request tokens,Response tokens,…``; failed rows (0 tokens) left out
Mooncake       JSON lines  ``timestamp`` in ms, ``input_length``, ``output_length``, ``hash_ids`` of 512 tokens
Qwen-Bailian   JSON lines  the same, in seconds, ``hash_ids`` of 16 tokens, ``chat_id`` and ``parent_chat_id``
ShareGPT       JSON array  conversations; the first prompt and answer, 4 characters a token
=============  ==========  =============================================================================

Any of them may be gzipped (``.gz``).
"""

from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_bytes
from orrery.catalog.trace_csv import csv_rows
from orrery.catalog.trace_json import json_lines, sharegpt
from orrery.catalog.trace_parquet import MAGIC, parquet
from orrery.catalog.trace_table import KNOWN, Trace, gathered


def read_trace(path: Path) -> Trace:
    """The trace in a file, in order of arrival from 0."""
    raw = read_user_bytes(path, f"trace with columns {KNOWN}, or a shipped name")
    if raw[:4] == MAGIC:
        return parquet(path, raw)
    text = _text(path, raw)
    first = text.lstrip()[:1]
    if first == "[":
        return sharegpt(path, text)
    if first == "{":
        return json_lines(path, text)
    return gathered(path, list(csv_rows(path, text)))


def _text(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is neither text nor gzipped text; a trace has columns {KNOWN}.") from None

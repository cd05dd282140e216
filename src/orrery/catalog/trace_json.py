"""Traces in JSON: Mooncake's and Qwen-Bailian's lines with the ids of prompt blocks, ShareGPT's conversations."""

from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.base.user_text import MAX_ROWS, json_value
from orrery.catalog.trace_table import Row, Trace, gathered, is_number, seconds, tokens

CHARACTERS_PER_TOKEN = 4.0
"""English text under common tokenizers, as OpenAI's tokenizer page puts it; ShareGPT holds text, not token counts."""

SHAREGPT_PROMPT_TOKENS, SHAREGPT_ANSWER_TOKENS = 32_768, 4_096
"""The longest that the chat service of ShareGPT's day (2023) took and gave; longer ones are pasted files and slips."""

MOONCAKE_BLOCK_TOKENS, BAILIAN_BLOCK_TOKENS = 512, 16
"""Tokens a hash id stands for, as the publishers' data descriptions say."""

Entry = dict[str, Any]


def json_lines(path: Path, text: str) -> Trace:
    """Mooncake's format, or Qwen-Bailian's, which has a ``chat_id``."""
    if (count := text.count("\n")) > MAX_ROWS:
        raise ScenarioError(f"{path}: {count:,} lines are too many; at most {MAX_ROWS:,} are read. Split the file.")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    entries = [(f"line {number}", _entry(path, number, line)) for number, line in lines]
    if "chat_id" in entries[0][1]:
        rows = [_bailian(path, place, entry) for place, entry in entries]
        return gathered(path, _chained(path, rows), block_tokens=BAILIAN_BLOCK_TOKENS)
    rows = [_mooncake(path, place, entry) for place, entry in entries]
    return gathered(path, rows, block_tokens=MOONCAKE_BLOCK_TOKENS)


def _entry(path: Path, number: int, line: str) -> Entry:
    entry = json_value(line, f"{path}: line {number}", "write one object a line")
    if not isinstance(entry, dict):
        raise ScenarioError(f"{path}: line {number}: got {line.strip()[:40]!r}; write one object a line.")
    return cast(Entry, entry)


def _mooncake(path: Path, place: str, entry: Entry) -> Row:
    at_ms, prompt, answer = _numbers(path, place, entry, ("timestamp", "input_length", "output_length"), "Mooncake's")
    at = seconds(path, place, "timestamp / 1000", at_ms / 1e3)
    return Row(
        at,
        tokens(path, place, "input_length", prompt),
        tokens(path, place, "output_length", answer),
        blocks=_hash_ids(path, place, entry),
    )


def _bailian(path: Path, place: str, entry: Entry) -> tuple[Row, Any, Any]:
    """The row without its session, its own chat and the chat before it."""
    names = ("timestamp", "input_length", "output_length", "chat_id")
    at, prompt, answer, _ = _numbers(path, place, entry, names, "Qwen-Bailian's")
    row = Row(
        seconds(path, place, "timestamp", at),
        tokens(path, place, "input_length", prompt),
        tokens(path, place, "output_length", answer),
        blocks=_hash_ids(path, place, entry),
    )
    parent = entry.get("parent_chat_id", -1)
    if not is_number(parent):
        raise ScenarioError(f"{path}: {place}: parent_chat_id: got {str(parent)[:40]!r}; write a chat_id, or -1.")
    return row, entry["chat_id"], parent


def _chained(path: Path, chats: list[tuple[Row, Any, Any]]) -> list[Row]:
    """A chat belongs to the session of the chat before it; one whose parent is not in the file begins its own."""
    sessions: dict[Any, Any] = {}
    rows: list[Row] = []
    for row, chat, parent in sorted(chats, key=lambda c: c[0].arrival_s):
        sessions[chat] = sessions.get(parent, chat)
        rows.append(row._replace(session=sessions[chat]))
    return rows


def _numbers(path: Path, place: str, entry: Entry, names: tuple[str, ...], whose: str) -> list[float]:
    if any(not is_number(entry.get(n)) for n in names):
        raise ScenarioError(f"{path}: {place}: needs numbers {', '.join(names)}, as {whose} traces have.")
    return [float(entry[n]) for n in names]


def _hash_ids(path: Path, place: str, entry: Entry) -> list[int]:
    ids: Any = entry.get("hash_ids", [])
    if type(ids) is not list or any(type(i) is not int or i < 0 for i in cast(list[Any], ids)):
        text = repr(cast(Any, ids))[:40]
        raise ScenarioError(f"{path}: {place}: hash_ids: got {text}; write a list of whole numbers from 0.")
    return cast(list[int], ids)


def sharegpt(path: Path, text: str) -> Trace:
    """The first prompt and answer of each conversation, 4 characters a token, capped at what the service allowed."""
    entries = cast(list[Any], json_value(text, path, "write an array of conversations"))
    rows: list[Row] = []
    capped = 0
    for number, entry in enumerate(entries, 1):
        turns = cast(Entry, entry).get("conversations") if isinstance(entry, dict) else None
        if not isinstance(turns, list):
            raise ScenarioError(f"{path}: entry {number}: has no conversations; ShareGPT entries do.")
        message = [str(cast(Entry, t).get("value", "")) for t in cast(list[Any], turns)[:2] if isinstance(t, dict)]
        if len(message) == 2:
            prompt, answer = (max(1, round(len(s) / CHARACTERS_PER_TOKEN)) for s in message)
            capped += prompt > SHAREGPT_PROMPT_TOKENS or answer > SHAREGPT_ANSWER_TOKENS
            rows.append(Row(0.0, min(prompt, SHAREGPT_PROMPT_TOKENS), min(answer, SHAREGPT_ANSWER_TOKENS)))
    notes = [f"{path.name}: token counts taken as characters / {CHARACTERS_PER_TOKEN:g}"]
    if capped:
        notes.append(
            f"{path.name}: {capped} impossible lengths cut to {SHAREGPT_PROMPT_TOKENS:,} in and "
            f"{SHAREGPT_ANSWER_TOKENS:,} out"
        )
    return gathered(path, rows, tuple(notes))

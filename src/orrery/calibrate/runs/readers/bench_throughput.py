"""`vllm bench throughput --output-json`: all requests at once. Keys: ``elapsed_time``, ``num_requests``,
``total_num_tokens``, ``requests_per_second``, ``tokens_per_second`` (prompts and answers together). Lengths and model
are not written down, so the user says them."""

from collections.abc import Sequence

from orrery.base.errors import ScenarioError
from orrery.calibrate.runs.log import Log, number
from orrery.calibrate.runs.reader import ParsedRun, Reader, UserSettings, check_duration, check_requests, needed

SAME = 0.05
"""Tokens said and counted differ by no more: lengths vary a little around what was asked for."""


def _recognise(log: Log) -> bool:
    return {"elapsed_time", "num_requests", "total_num_tokens"} <= log.one.keys()


def _read(logs: Sequence[Log], user_settings: UserSettings) -> list[ParsedRun]:
    return [_run(log, user_settings) for log in logs]


def _run(log: Log, user_settings: UserSettings) -> ParsedRun:
    run, x = ParsedRun(), log.one
    elapsed_s, requests, tokens = (number(x, k) for k in ("elapsed_time", "num_requests", "total_num_tokens"))
    check_duration(log.name, elapsed_s)
    run.notes += check_requests(log.name, requests, 0.0)
    flags = {"input_tokens": "--input-tokens 1024", "output_tokens": "--output-tokens 128"}
    lengths = needed(user_settings, log.name, flags)
    both = lengths["input_tokens"] + lengths["output_tokens"]
    if abs(tokens / requests / both - 1.0) > SAME:
        raise ScenarioError(
            f"{log.name}: {tokens:.0f} tokens in {requests:.0f} requests are {tokens / requests:.1f} each, but "
            f"--input-tokens and --output-tokens make {both:g}; write those of this run."
        )
    for column, value in (
        ("kind", "serving"),
        ("engine", "vllm"),
        ("mode", "offline"),
        ("num_requests", requests),
        ("requests_per_s", requests / elapsed_s),
        ("total_tokens_per_s", tokens / elapsed_s),
    ):
        run.add_note(column, value)
    return run


READER = Reader(name="vllm bench throughput", recognise=_recognise, read=_read)

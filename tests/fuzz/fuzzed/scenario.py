"""A scenario file, as every command reads it."""

from pathlib import Path

from fuzzed import describe
from orrery.base.errors import OrreryError
from orrery.reports.source import read_source
from orrery.scenario.file import load_scenario

NAME = "scenario.toml"
SEEDS = (
    b'model = "llama-3.1-70b"\ndevice = "h100-sxm"\ntp = 4\nrate = 2.5\ninput_tokens = 1000\noutput_tokens = 200\n'
    b'slo = ["ttft:1000", "tpot:50"]\n',
    b'model = "llama-3.1-8b"\ndevice = "h100-sxm"\ndevices = 8\nglobal_batch = 64\nseq_len = 4096\nsharding = "zero3"\n',
    b'workload = "chat"\ntrace = "chat"\nmax_devices = 8\nprefix_caching = false\nspeculation = "eagle"\n',
    b'{"settings": {"model": "llama-3.1-8b", "device": "h100-sxm"}, "infeasible": {"need": 1}}',
)
WORDS = (
    b"[[",
    b"]]",
    b"'''",
    b'"""',
    b"1e400",
    b"nan",
    b"inf",
    b"0x7f",
    b"2026-11-23",
    b"true",
    b"users = 5",
    b'load = "a"',
    b"1_000",
    b"a.b = 1",
    b"\\u0000",
    b"concurrency",
    b"num_requests",
    b"policy",
    b"expert_loads",
    b"9" * 40,
    b"9" * 5000,
)
REFUSALS = (OrreryError,)


def read(path: Path) -> str:
    """As a scenario, and as what a report is made of: what each says."""
    return describe(lambda: load_scenario(path), lambda: read_source(path))

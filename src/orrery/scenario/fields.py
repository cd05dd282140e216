"""Every setting a scenario may hold: what it is, what may be written, and which commands read it.

One list for the scenario file, the command line and the messages; it imports nothing heavy, so that help stays quick.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "count", "number", "words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key of a scenario; its flag is the key with dashes. ``least`` and ``most`` bound numbers."""

    name: str
    kind: Kind
    help: str
    example: str
    metavar: str = ""
    least: float = 1
    most: float = 1_000_000
    excludes_least: bool = False
    commands: frozenset[str] = frozenset({"estimate", "why", "plan"})

    @property
    def flag(self) -> str:
        """As typed: ``--input-tokens``."""
        return "--" + self.name.replace("_", "-")

    @property
    def expects(self) -> str:
        """What to write, in words."""
        if self.kind == "count":
            return f"a whole number from {self.least:,.0f} to {self.most:,.0f}"
        if self.kind == "number":
            low = f"above {self.least:g}" if self.excludes_least else f"from {self.least:g}"
            return f"a number {low} to {self.most:,.6g}"
        return "text" if self.kind == "word" else "a list of texts"


_ONE = frozenset({"estimate", "why"})
_PLAN = frozenset({"plan"})


def _count(
    name: str, help: str, example: int, *, most: float = 1_000_000, least: float = 1,
    commands: frozenset[str] = _ONE | _PLAN,
) -> Setting:  # fmt: skip
    return Setting(
        name=name, kind="count", help=help, example=str(example), metavar="N", least=least, most=most, commands=commands
    )


def _number(
    name: str, help: str, example: float, *, most: float, least: float = 0.0, excludes_least: bool = True,
    metavar: str = "X",
) -> Setting:  # fmt: skip
    return Setting(
        name=name, kind="number", help=help, example=f"{example:g}", metavar=metavar, least=least, most=most,
        excludes_least=excludes_least,
    )  # fmt: skip


def _word(name: str, help: str, example: str, metavar: str, *, commands: frozenset[str] = _ONE | _PLAN) -> Setting:
    return Setting(name=name, kind="word", help=help, example=f'"{example}"', metavar=metavar, commands=commands)


SETTINGS: tuple[Setting, ...] = (
    _word("model", "A model's name, or a config.json (file or folder).", "llama-3.1-70b", "NAME|PATH"),
    _word("device", "A device's name or file; plan takes several, with commas.", "h100-sxm", "NAME|PATH"),
    _count("devices", "How many devices in all; without it, as many as the layout needs.", 8),
    _count("tp", "Tensor-parallel degree.", 4, most=4096),
    _count("pp", "Pipeline stages.", 2, most=4096),
    _count("dp", "Data-parallel degree.", 2, most=65536),
    _count("ep", "Expert-parallel degree.", 8, most=65536),
    _count("cp", "Context-parallel degree.", 1, most=4096),
    _word("weights", "Format of the weights (plan: several, with commas).", "fp8", "FORMAT"),
    _word("activations", "Format of the activations.", "fp8", "FORMAT"),
    _word("kv", "Format of the key/value cache (plan: several, with commas).", "fp8", "FORMAT"),
    _word("engine", "Serving engine: vllm, sglang, tensorrt-llm, …", "vllm", "NAME"),
    _word("engine_version", "Version of the engine.", "0.11.0", "VERSION"),
    _count("input_tokens", "Mean prompt length.", 1024, most=100_000_000),
    _count("output_tokens", "Mean answer length.", 256, most=100_000_000),
    _number("input_tokens_std", "Standard deviation of the prompt length.", 300, most=1e8, excludes_least=False),
    _number("output_tokens_std", "Standard deviation of the answer length.", 80, most=1e8, excludes_least=False),
    _count("batch", "A static batch: so many equal requests, start to end.", 16, commands=_ONE),
    _count("concurrency", "Requests kept in flight (closed loop).", 32, commands=_ONE),
    _number("rate", "Requests that arrive each second (with --trace: in place of its own).", 4, most=10_000_000,
            metavar="PER_S"),
    _word("trace", "Arrivals and lengths: a shipped name (chat, code, …) or a file.", "chat", "NAME|FILE"),
    Setting(
        name="slo", kind="words", metavar="METRIC:MS", example='["ttft:1000", "tpot:50"]', commands=_PLAN,
        help="An objective in milliseconds: ttft:MS, tpot:MS or e2el:MS; repeat for more.",
    ),
    _word("objective", "What the best plan is best at: cost (default) or throughput.", "cost", "cost|throughput",
          commands=_PLAN),
    _count("max_devices", "The most devices a plan may use.", 8, commands=_PLAN),
    _count("max_num_seqs", "The most sequences in one step.", 256),
    _count("max_num_batched_tokens", "The most tokens in one step.", 8192, most=100_000_000),
    _count("max_model_len", "The longest sequence that is let in.", 8192, most=100_000_000),
    _number("gpu_memory_utilization", "Share of device memory that the engine may fill.", 0.9, most=1.0),
    _number("usd_per_hour", "Your own price of one device for one hour.", 2.5, most=100_000, excludes_least=False),
    _number("electricity", "Price of electricity in $ per kWh, added to the devices' price.", 0.12, most=100,
            excludes_least=False),
    _count("seed", "Seed of everything random.", 0, least=0, most=2**53),
)  # fmt: skip
"""In the order of the help page."""

BY_NAME = {s.name: s for s in SETTINGS}

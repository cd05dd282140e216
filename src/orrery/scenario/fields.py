"""Every setting a scenario may hold: what it is, what may be written, and which commands read it.

One list for the scenario file, the command line and the messages; it imports nothing heavy, so that help stays quick.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "count", "number", "words", "switch"]


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
    commands: frozenset[str] = frozenset({"estimate", "why", "plan", "simulate"})

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
        return {"word": "text", "switch": "true or false"}.get(self.kind, "a list of texts")


_ONE = frozenset({"estimate", "why"})
_PLAN = frozenset({"plan"})
_SIMULATE = frozenset({"simulate"})
_ALL = _ONE | _PLAN | _SIMULATE


def _count(
    name: str, help: str, example: int, *, most: float = 1_000_000, least: float = 1,
    commands: frozenset[str] = _ALL,
) -> Setting:  # fmt: skip
    return Setting(
        name=name, kind="count", help=help, example=str(example), metavar="N", least=least, most=most, commands=commands
    )


def _number(
    name: str, help: str, example: float, *, most: float, least: float = 0.0, excludes_least: bool = True,
    metavar: str = "X", commands: frozenset[str] = _ALL,
) -> Setting:  # fmt: skip
    return Setting(
        name=name, kind="number", help=help, example=f"{example:g}", metavar=metavar, least=least, most=most,
        excludes_least=excludes_least, commands=commands,
    )  # fmt: skip


def _switch(name: str, help: str) -> Setting:
    return Setting(name=name, kind="switch", help=help, example="true", commands=_SIMULATE)


def _word(name: str, help: str, example: str, metavar: str, *, commands: frozenset[str] = _ALL) -> Setting:
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
    _count("concurrency", "Requests kept in flight (closed loop).", 32, commands=_ONE | _SIMULATE),
    _number("rate", "Requests that arrive each second (with --trace: in place of its own).", 4, most=10_000_000,
            metavar="PER_S"),
    _word("trace", "Arrivals and lengths: a shipped name (chat, code, …) or a file.", "chat", "NAME|FILE"),
    Setting(
        name="slo", kind="words", metavar="METRIC:MS", example='["ttft:1000", "tpot:50"]', commands=_PLAN | _SIMULATE,
        help="An objective in milliseconds: ttft:MS, tpot:MS, e2el:MS; where it is simulated also p99_ttft:MS.",
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
    _count("num_requests", "Requests of the run (default 1000, or all of a trace).", 1000, most=100_000_000,
           commands=_PLAN | _SIMULATE),
    _word("arrivals", "How they arrive at a rate: poisson, gamma, constant, mmpp, diurnal, ramp.", "poisson", "LAW",
          commands=_SIMULATE),
    _word("lengths", "How lengths spread: constant, uniform, normal, lognormal.", "lognormal", "LAW",
          commands=_SIMULATE),
    _number("turns", "Mean requests of a conversation; its history is a prefix that grows.", 4, most=10_000, least=1,
            excludes_least=False, metavar="N", commands=_SIMULATE),
    _number("think_s", "Mean pause between an answer and the next turn, in seconds.", 30, most=1e6,
            excludes_least=False, commands=_SIMULATE),
    _number("calls", "Mean tool calls of an agent's task; each is a request on a growing context.", 8, most=10_000,
            excludes_least=False, metavar="N", commands=_SIMULATE),
    _count("prefix_tokens", "Leading prompt tokens that requests share.", 512, most=100_000_000, commands=_SIMULATE),
    _count("prefix_groups", "How many different shared prefixes there are.", 10, commands=_SIMULATE),
    _count("replicas", "Replicas of the deployment, behind a router.", 4, most=100_000, commands=_SIMULATE),
    _word("policy", "How batches are formed (`orrery show techniques`); default: as the engine does.",
          "chunked-prefill", "NAME", commands=_SIMULATE),
    _word("queue", "Who is served first: fcfs, priority, shortest-first, fair.", "fcfs", "NAME", commands=_SIMULATE),
    _word("router", "Which replica: least-loaded, round-robin, session-affinity, prefix-aware, power-of-two.",
          "least-loaded", "NAME", commands=_SIMULATE),
    _switch("prefix_caching", "Keep prompts that others may share (default: as the engine does)."),
    _word("preemption", "When the cache is full: recompute or swap.", "recompute", "recompute|swap",
          commands=_SIMULATE),
    _number("host_cache_bytes", "Host memory of a replica for blocks that leave the device.", 64e9, most=1e15,
            metavar="BYTES", commands=_SIMULATE),
    _count("prefill_replicas", "Separate replicas for prompts; the others only answer.", 1, most=100_000,
           commands=_SIMULATE),
    _count("prefill_tp", "Tensor-parallel degree of those.", 2, most=4096, commands=_SIMULATE),
    _count("prefill_pp", "Pipeline stages of those.", 1, most=4096, commands=_SIMULATE),
    _word("prefill_device", "Their device, where it is another one.", "h100-sxm", "NAME|PATH", commands=_SIMULATE),
    _switch("same_node", "Both kinds stand in one node: caches go over its links."),
    _word("split", "Part of each device's compute units for answers, beside prompts; several: the first to start with.",
          "0.4,0.6", "FRAC[,FRAC]", commands=_SIMULATE),
    _word("overlap", "What runs at once in a step: ladder-residual, token-split, nano-batches.", "token-split", "NAME",
          commands=_SIMULATE),
    _word("transfer", "How caches travel between machines: plain-copy, encrypted-serial, encrypted-pipelined.",
          "plain-copy", "NAME", commands=_SIMULATE),
    _word("swap", "The same between device and host.", "encrypted-pipelined", "NAME", commands=_SIMULATE),
    _word("draft_model", "A small model that guesses tokens (default: they are looked up in the prompt).",
          "llama-3.2-1b", "NAME|PATH", commands=_SIMULATE),
    _count("draft_tokens", "Tokens that are guessed ahead and checked in one step.", 4, most=1000, commands=_SIMULATE),
    _word("draft_tree", "Guesses at each level of a tree, in place of draft_tokens.", "4,2,1", "N,N,…",
          commands=_SIMULATE),
    _number("acceptance", "Share of guesses that hold.", 0.7, most=1.0, excludes_least=False, commands=_SIMULATE),
    _number("kv_kept_tokens", "Share of a prompt's tokens that a compressed cache keeps.", 0.5, most=1.0,
            commands=_SIMULATE),
    _number("kv_kept_bytes", "Share of each token's bytes that a compressed cache keeps.", 0.5, most=1.0,
            commands=_SIMULATE),
    _switch("lend_cache", "Replicas keep blocks for each other, and attend to them where they are."),
    _count("fill_tokens", "Fine-tuning tokens fill every step up to so many tokens.", 2048, most=100_000_000,
           commands=_SIMULATE),
    _number("fill_until_s", "… while a step takes less than this.", 0.05, most=1e6, commands=_SIMULATE),
    _number("attainment", "Share of requests that must meet the objectives (default 0.9).", 0.9, most=1.0,
            metavar="FRAC", commands=_PLAN | _SIMULATE),
    Setting(
        name="knob", kind="words", metavar="NAME=VALUE", example='["policy.chunk_tokens=512"]', commands=_SIMULATE,
        help="A knob of a chosen technique: policy.chunk_tokens=512, arrivals.burstiness=0.5, …; repeat for more.",
    ),
)  # fmt: skip
"""In the order of the help page."""

BY_NAME = {s.name: s for s in SETTINGS}

"""Which rows of the scored tables a goal speaks of."""

from collections.abc import Callable, Sequence

import numpy as np

from scorecard_rows import Mask, Scored


def is_op(*ops: str) -> Callable[[Scored], Mask]:
    """Rows of these kernels or collectives in the main tables of them."""
    return lambda s: np.isin(s.words["op"], ops) if "op" in s.words else none(s)


def none(s: Scored) -> Mask:
    """No row at all."""
    return np.zeros(len(s.measured), dtype=bool)


def runs(
    table: str, mode: str = "", versions: Sequence[str] = (), vendor: Sequence[str] = ()
) -> Callable[[Scored], Mask]:
    """Rows of the serving tables whose name starts so, in one mode, of some engine versions, on some devices."""

    def choose(s: Scored) -> Mask:
        if "mode" not in s.words or not s.table.startswith(table):
            return none(s)
        rows = (s.words["mode"] == mode) if mode else ~none(s)
        if versions:
            rows = rows & np.isin(s.words["engine_version"], versions)
        if vendor:
            rows = rows & np.array([str(d).startswith(tuple(vendor)) for d in s.words["device"]])
        return rows

    return choose


NVIDIA = ("a100", "h100", "h200", "gh200", "b200", "gb200", "l40s")
MAIN = (
    "gemm.csv.gz",
    "attention_prefill.csv.gz",
    "attention_decode.csv.gz",
    "mla.csv.gz",
    "moe.csv.gz",
    "collectives.csv.gz",
    "moe_dispatch_combine.csv.gz",
)


def main_op(*ops: str) -> Callable[[Scored], Mask]:
    """Rows of these ops in the large tables that the goals speak of."""
    return lambda s: is_op(*ops)(s) if s.table in MAIN else none(s)


def training(
    table: str = "", devices: Sequence[str] = (), outcome: str = "ran", **words: str
) -> Callable[[Scored], Mask]:
    """Rows of the training tables whose name starts so, on some devices, and with these words."""

    def choose(s: Scored) -> Mask:
        if s.kind != "training" or not s.table.startswith(table):
            return none(s)
        rows = s.words["outcome"] == outcome
        for name, word in words.items():
            rows = rows & (s.words[name] == word)
        if devices:
            rows = rows & np.array([str(d).startswith(tuple(devices)) for d in s.words["device"]])
        return rows

    return choose


def rl_steps(s: Scored) -> Mask:
    """Steps of RL post-training."""
    return ~none(s) if s.kind == "rl" else none(s)


def vtrain(is_one_node: bool) -> Callable[[Scored], Mask]:
    """The sweep on A100s, on one node or on several."""

    def choose(s: Scored) -> Mask:
        rows = training("vtrain_a100")(s)
        return rows & ((s.words["num_devices"] <= ONE_NODE) == is_one_node) if rows.any() else rows

    return choose


ONE_NODE = "000008"
NEW = ("h100", "b200", "gb200")
WITH_MEMORY = ("megatron_ci_", "torchtitan")
"""Tables that give the allocator's peak; rows that do not state the devices are no full layout."""

NEW_TABLES = {
    "DGX Cloud recipes": "dgxc_",
    "LLM Foundry": "llm_foundry",
    "Megatron Bridge": "megatron_bridge_perf_summary",
    "NeMo 24.07": "nemo_2407",
    "NeMo launcher": "nemo_launcher",
    "MLPerf, language models": "mlperf_training_llm",
    "Megatron-LM's test models": "megatron_ci_small_tests",
    "every table": "",
}
"""Tables with such devices, as the page calls them."""


def with_memory(**words: str) -> Callable[[Scored], Mask]:
    """Rows of those tables."""
    return lambda s: training(states="devices", **words)(s) if s.table.startswith(WITH_MEMORY) else none(s)

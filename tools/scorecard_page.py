"""The scorecard as a Markdown page."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scorecard_rows import Counts, Mask, Scored, join

INTRO = """# Scorecard

How far orrery is from measurements that it has not seen. `make scorecard` writes this page again from the measured
tables; the same numbers stand in `src/orrery/evidence/accuracy.toml`, so that a change shows in every diff.

Each table is split by a hash of the weight shape, layer or model: 20 % of the shapes fit constants, 20 % set the
intervals, and only the other 60 %, the **test rows**, are scored here. No shape stands on two sides. Rows that beat a
physical bound (the datasheet's peak arithmetic; its bandwidth for bytes that no cache can hold; for a static batch,
reading all active weights once per token) are left out because of the bound, never because of their error, and
counted at the end.

Errors are *predicted / measured - 1*; a cell says **median / mean / 90th percentile** of its size, in percent.
*Bias* is the median with its sign. *80 %* and *95 %* are the shares of measurements inside the predicted intervals. The
two rivals are the **roofline** (the datasheet alone) and a **closed form** with five constants, fitted on the same rows
for each device, format and engine (serving: for each engine). *Physics alone* is orrery's kernel rule with its fitted
constants but without the small learned correction that some ops carry on top; where the cell is empty there is none.
"""

COLUMNS = "rows | roofline | five constants | physics alone | **orrery** | bias | 80 % | 95 %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One thing to reach: which rows, which statistic, how small."""

    name: str
    rows: Callable[[Scored], Mask]
    metric: str
    statistic: str
    limit: float
    who: str = "ours"


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
MAIN = ("gemm.csv.gz", "attention_prefill.csv.gz", "attention_decode.csv.gz", "mla.csv.gz", "moe.csv.gz",
        "collectives.csv.gz", "moe_dispatch_combine.csv.gz")  # fmt: skip


def main_op(*ops: str) -> Callable[[Scored], Mask]:
    """Rows of these ops in the large tables that the goals speak of."""
    return lambda s: is_op(*ops)(s) if s.table in MAIN else none(s)


GOALS = (
    Goal(name="GEMM, physics alone", rows=main_op("gemm"), metric="time_s", statistic="median", limit=0.06,
         who="physics"),
    Goal(name="GEMM, physics alone", rows=main_op("gemm"), metric="time_s", statistic="mean", limit=0.085,
         who="physics"),
    Goal(name="GEMM", rows=main_op("gemm"), metric="time_s", statistic="median", limit=0.04),
    Goal(name="GEMM", rows=main_op("gemm"), metric="time_s", statistic="mean", limit=0.06),
    Goal(name="Prefill attention, physics alone", rows=main_op("attention_prefill"), metric="time_s",
         statistic="median", limit=0.06, who="physics"),
    Goal(name="Prefill attention", rows=main_op("attention_prefill"), metric="time_s", statistic="median", limit=0.03),
    Goal(name="Decode attention, physics alone", rows=main_op("attention_decode"), metric="time_s",
         statistic="median", limit=0.09, who="physics"),
    Goal(name="Decode attention", rows=main_op("attention_decode"), metric="time_s", statistic="median", limit=0.04),
    Goal(name="Experts (MoE)", rows=main_op("moe"), metric="time_s", statistic="median", limit=0.10),
    Goal(name="Latent attention (MLA)", metric="time_s", statistic="median", limit=0.10,
         rows=main_op("mla_prefill", "mla_decode", "mla_absorb_query", "mla_absorb_value")),
    Goal(name="Collectives", metric="time_s", statistic="median", limit=0.12,
         rows=lambda s: ~none(s) if s.table == "collectives.csv.gz" else none(s)),
    Goal(name="TensorRT-LLM 1.0 and later, offline", rows=runs("trtllm_throughput", "offline", ("1.0", "1.1", "1.2")),
         metric="output_tokens_per_s", statistic="median", limit=0.04),
    Goal(name="TensorRT-LLM 1.0 and later, offline", rows=runs("trtllm_throughput", "offline", ("1.0", "1.1", "1.2")),
         metric="output_tokens_per_s", statistic="p90", limit=0.09),
    Goal(name="TensorRT-LLM 0.17, offline", rows=runs("trtllm_throughput", "offline", ("0.17",)),
         metric="output_tokens_per_s", statistic="median", limit=0.06),
    Goal(name="Static batches, NVIDIA devices (Argonne)", rows=runs("argonne_static", "static", vendor=NVIDIA),
         metric="latency_s", statistic="median", limit=0.05),
    Goal(name="Older engines, static (TensorRT-LLM to 0.9)", rows=runs("trtllm_throughput", "static"),
         metric="output_tokens_per_s", statistic="median", limit=0.10),
    Goal(name="Closed loop", rows=runs("closed_loop", "closed"), metric="tpot_s", statistic="median", limit=0.10),
    Goal(name="Closed loop", rows=runs("closed_loop", "closed"), metric="tpot_s", statistic="p90", limit=0.25),
    Goal(name="Closed loop", rows=runs("closed_loop", "closed"), metric="ttft_s", statistic="median", limit=0.35),
)  # fmt: skip

_WORD = {"median": "median_abs_error_frac", "mean": "mean_abs_error_frac", "p90": "p90_abs_error_frac"}


def write_page(scored: Sequence[Scored], counts: dict[str, Counts]) -> str:
    """The whole page."""
    kernels = [s for s in scored if "op" in s.words and s.metric == "time_s"]
    power = [s for s in scored if "op" in s.words and s.metric == "power_w"]
    serving = [s for s in scored if "mode" in s.words]
    parts = [
        INTRO,
        "![Predicted against measured](scorecard.svg)\n",
        "## Goals\n", *goals(scored),
        "\n## Kernels and collectives\n", *by_words(kernels, ("table", "op")),
        "\n### Power of kernels\n",
        "Mean power of the board while one kernel repeats; the rival in the roofline's column is the power limit.\n",
        *by_words(power, ("op", "device", "format")),
        "\n## Serving runs\n",
        "Rates of open runs are set by the arrivals, and the total rate of a static batch is its latency in other "
        "words; neither is scored.\n",
        *by_words(serving, ("table", "metric", "mode")),
        "\n### By engine\n", *by_words(serving, ("table", "metric", "mode", "engine", "engine_version")),
        "\n### By device\n", *by_words(serving, ("metric", "mode", "device")),
        "\n## Kernels by device, format and engine\n", *by_words(kernels, ("op", "device", "format", "engine")),
        "\n## Rows that were not scored\n", *not_scored(counts),
    ]  # fmt: skip
    return "\n".join(parts).rstrip() + "\n"


def goals(scored: Sequence[Scored]) -> list[str]:
    """What was to be reached, and what is."""
    lines = ["| what | metric | statistic | goal | **orrery** | roofline | five constants | rows | |", "|" + "---|" * 9]
    for goal in GOALS:
        chosen = [s.take(rows) for s in scored if s.metric == goal.metric and (rows := goal.rows(s)).any()]
        if not chosen:
            lines.append(
                f"| {goal.name} | `{goal.metric}` | {goal.statistic} | {_pct(goal.limit)} | no row | | | 0 | |"
            )
            continue
        whole = join(chosen)
        found = {w: getattr(whole.score(w), _WORD[goal.statistic]) for w in (goal.who, "roofline", "closed")}
        mark = "reached" if found[goal.who] <= goal.limit else "missed"
        lines.append(
            f"| {goal.name} | `{goal.metric}` | {goal.statistic} | {_pct(goal.limit)} | **{_pct(found[goal.who])}** "
            f"| {_pct(found['roofline'])} | {_pct(found['closed'])} | {whole.score().rows:,} | {mark} |"
        )
    return lines


def summary(scored: Sequence[Scored]) -> str:
    """The short table of the README: medians of orrery and of the two rivals."""
    lines = ["| measured | rows | datasheet roofline | five fitted constants | **orrery** |", "|---|---|---|---|---|"]
    for goal in GOALS:
        chosen = [s.take(rows) for s in scored if s.metric == goal.metric and (rows := goal.rows(s)).any()]
        if goal.statistic == "median" and goal.who == "ours" and chosen:
            whole = join(chosen)
            cells = [_pct(whole.score(who).median_abs_error_frac) for who in ("roofline", "closed", "ours")]
            lines.append(
                f"| {goal.name}: `{goal.metric}` | {whole.score().rows:,} | {cells[0]} | {cells[1]} | **{cells[2]}** |"
            )
    return "\n".join(lines)


def by_words(scored: Sequence[Scored], names: Sequence[str]) -> list[str]:
    """One line for every combination of words."""
    groups: dict[tuple[str, ...], list[Scored]] = {}
    for s in scored:
        columns = [_column(s, n) for n in names]
        for key in sorted(set(zip(*columns, strict=True))):
            mask = np.all([c == k for c, k in zip(columns, key, strict=True)], axis=0)
            groups.setdefault(key, []).append(s.take(mask))
    head = [f"| {' | '.join(n.replace('_', ' ') for n in names)} | {COLUMNS} |", "|" + "---|" * (len(names) + 8)]
    return head + [_line(key, join(parts)) for key, parts in sorted(groups.items())]


def _column(s: Scored, name: str) -> np.ndarray:
    own = {"table": s.table.removesuffix(".gz").removesuffix(".csv"), "metric": s.metric}
    return np.full(len(s.measured), own[name], dtype=object) if name in own else s.words[name].astype(object)


def _line(key: Iterable[str], s: Scored) -> str:
    ours = s.score()
    cells = [
        *(f"`{k}`" if k else "" for k in key), f"{ours.rows:,}", _three(s, "roofline"), _three(s, "closed"),
        _three(s, "physics") if (s.physics != s.ours).any() else "",
        f"**{_three(s, 'ours')}**", f"{100 * ours.bias_frac:+.1f}", _share(ours.covered_80_frac),
        _share(ours.covered_95_frac),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _three(s: Scored, who: str) -> str:
    found = s.score(who)
    if not found.rows:
        return ""
    values = (found.median_abs_error_frac, found.mean_abs_error_frac, found.p90_abs_error_frac)
    return " / ".join(f"{100 * v:.1f}" if v < 10 else f"{100 * v:.0f}" for v in values)


def _pct(value: float) -> str:
    return f"{100 * value:.1f} %" if np.isfinite(value) else ""


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}"


def not_scored(counts: dict[str, Counts]) -> list[str]:
    """Per table: how many rows, how many are for the test, left out by a bound, and declined with the reasons."""
    lines = ["| table | rows | test rows | beat a bound | declined | why |", "|---|---|---|---|---|---|"]
    for name, count in sorted(counts.items()):
        reasons = sorted(count.declined.items(), key=lambda r: -r[1])
        why = "; ".join(f"{reason} ({rows})" for reason, rows in reasons[:4])
        more = f"; and {len(reasons) - 4} more reasons" if len(reasons) > 4 else ""
        lines.append(
            f"| `{name}` | {count.rows:,} | {count.test:,} | {count.screened:,} "
            f"| {sum(count.declined.values()):,} | {why}{more} |"
        )
    return lines

"""Ten questions of the gallery: the command that answers each, its answer in a sentence, and the picture of it.

Sentences and pictures are made of what the command prints with ``--json``, so that they change with it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.base.units import percent, si
from orrery.drawing import Axis, Bar, Part, Reading, Series, intervals, lines, stacked
from orrery.evidence.amounts import amount

Plain = Mapping[str, Any]
LLAMA = "--model llama-3.1-70b"
CHAT = "--max-devices 8 --trace chat --slo ttft:1000 --slo tpot:50"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: its command, the page that says more, and what is made of the answer."""

    question: str
    command: str
    page: str  # of the docs
    sentence: Callable[[Plain], str]
    draw: Callable[[Plain, str], str]
    before: str = ""  # a command that must run first

    @property
    def name(self) -> str:
        """As its picture is called."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.question.casefold()).split())


def _layout(plan: Plain) -> str:
    return f"{plan['num_devices']} x {plan['device']}, ${plan['usd_per_million_tokens']:.2f} per million"


def _cheapest(plain: Plain) -> str:
    plan = plain["plans"][0]
    return (
        f"{plan['num_devices']} {plan['device']} with {plan['formats']['weights']} weights: TTFT "
        f"{amount(plan['ttft_s'], 's')}, TPOT {amount(plan['tpot_s'], 's')}, "
        f"${plan['usd_per_million_tokens']:.3g} per million output tokens."
    )


def _plans(plain: Plain, title: str) -> str:
    """The plans' time per output token with its interval."""
    rows = [
        Reading(_layout(p), p["tpot_s"], p["intervals"]["tpot_s"]["low_80"], p["intervals"]["tpot_s"]["high_80"])
        for p in plain["plans"]
    ]
    return intervals(rows, Axis("TPOT", "s", low=0.0), title=title, says="plans from the cheapest, with 80 % intervals")


def _fits(plain: Plain) -> str:
    memory, room = plain["memory"], plain["room"]
    return (
        f"Yes: {si(memory['weights_bytes'], 'bytes')} of weights on each of {plain['num_devices']} devices leave room "
        f"for {room['kv_cache_tokens']:,.0f} tokens in the KV cache."
    )


def _memory(plain: Plain, title: str) -> str:
    kinds = ("weights", "kv_capacity", "activation", "communication", "context")
    parts = [Part(kind.replace("kv_capacity", "KV cache"), plain["memory"][f"{kind}_bytes"]) for kind in kinds]
    bar = Bar("each device", parts, mark=plain["memory"]["capacity_bytes"], mark_name="capacity")
    return stacked([bar], Axis("", "bytes"), title=title)


def _which(plain: Plain) -> str:
    best, *others = _best_of_each(plain)
    beside = "; ".join(f"{p['device']} ${p['usd_per_million_tokens']:.2f}" for p in others)
    return f"{best['device']} at ${best['usd_per_million_tokens']:.3g} per million output tokens ({beside})."


def _best_of_each(plain: Plain) -> list[Plain]:
    """The first plan of each device, the cheapest first."""
    found: dict[str, Plain] = {}
    for plan in plain["plans"]:
        found.setdefault(plan["device"], plan)
    return list(found.values())


def _costs(plain: Plain, title: str) -> str:
    bars = [Bar(p["device"], [Part("cost", p["usd_per_million_tokens"])]) for p in _best_of_each(plain)]
    return stacked(bars, Axis("per million output tokens", "usd"), title=title, says="each device's cheapest plan")


def _money(plain: Plain) -> str:
    words = {"api": "the API", "own": "own machines", "rent": "rented ones"}
    ways = sorted(plain["money"]["ways"], key=lambda way: way["month_usd"])
    first, *others = [f"{words.get(w['name'], w['name'])} ${w['month_usd']:,.0f}" for w in ways]
    return f"{first[0].upper()}{first[1:]} a month; {', '.join(others)}."


def _cash(plain: Plain, title: str) -> str:
    ways = plain["money"]["ways"]
    curves = [Series(w["name"], list(range(1, len(w["cash_usd"]) + 1)), w["cash_usd"]) for w in ways]
    return lines(curves, Axis("month"), Axis("paid in all", "usd", low=0.0), title=title)


def _disaggregates(plain: Plain) -> str:
    return str(plain["conclusion"])


def _designs(plain: Plain, title: str) -> str:
    best: dict[str, float] = {}
    for d in plain["designs"]:
        if d["holds"]:
            best[d["way"]] = max(best.get(d["way"], 0.0), d["requests_per_s_per_device"])
    bars = [Bar(way, [Part("requests/s per device", rate)]) for way, rate in best.items()]
    return stacked(bars, Axis("requests/s per device"), title=title, says="the best of each kind that holds the SLO")


def _slow(plain: Plain) -> str:
    return f"{plain['summary'][0].upper()}{plain['summary'][1:]}"


def _causes(plain: Plain, title: str) -> str:
    bars = [Bar(s["cause"], [Part("explained", max(0.0, s["explained_frac"]))]) for s in plain["suspects"][:5]]
    return stacked(bars, Axis("share of the lost time explained", "frac"), title=title)


def _run(plain: Plain) -> str:
    run = plain["run"]
    return (
        f"${run['usd']:,.0f} and {run['days']:.3g} days on {run['num_devices']} devices at "
        f"{percent(plain['mfu_frac'])} MFU."
    )


def _step(plain: Plain, title: str) -> str:
    parts = [Part(name, value) for name, value in plain["parts"].items() if value > 0.005 * plain["step_time_s"]]
    return stacked([Bar("one step", parts)], Axis("", "s"), title=title)


def _cache(plain: Plain) -> str:
    tiers = ", ".join(f"{percent(t['turns_frac'])} with the {t['name']}'s" for t in plain["tiers"])
    need = si(plain["needed_bytes"], "bytes")
    return f"{need} for {percent(plain['cache_hit_frac'])} of the turns to hit; {tiers} memory."


def _hits(plain: Plain, title: str) -> str:
    curve = plain["curve"]
    x = [point["cache_tokens"] * plain["token_bytes"] for point in curve]
    turns = Series("turns that hit", x, [point["turns_frac"] for point in curve])
    mark = (plain["needed_bytes"], "needed")
    return lines([turns], Axis("KV cache", "bytes", is_log=True), Axis("turns", "frac"), title=title, mark=mark)


def _scales(plain: Plain) -> str:
    (name, slo), pool = next(iter(plain["slo"].items())), plain["pools"][0]
    word = "holds" if slo["is_met"] else "does not hold"
    return (
        f"With up to {pool['replicas_max']} replicas {name.replace('_', ' ').replace('ttft', 'TTFT')} {word}: "
        f"{percent(slo['attained_frac'], 1)} within {slo['limit_s']:g} s for ${plain['cost_usd']:.2f}; "
        f"{plain['hurt']['cold-start']:,} requests waited for a start."
    )


def _replicas(plain: Plain, title: str) -> str:
    minutes = [s / 60.0 for s in plain["series"]["start_s"]]
    curves = [Series(name, minutes, plain["series"][name]) for name in ("serving", "paid")]
    return lines(curves, Axis("minutes"), Axis("replicas", low=0.0), title=title)


def _own(plain: Plain) -> str:
    i = plain["intervals"]["tpot_s"]
    between = f"80 %: {amount(i['low_80'], 's')} to {amount(i['high_80'], 's')}"
    return f"TPOT {amount(plain['tpot_s'], 's')} ({between}) and {plain['output_tokens_per_s']:,.0f} tokens/s in all."


def _times(plain: Plain, title: str) -> str:
    rows = [
        Reading(word, plain[name], plain["intervals"][name]["low_80"], plain["intervals"][name]["high_80"])
        for word, name in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("E2E", "latency_s"))
    ]
    return intervals(rows, Axis("", "s", is_log=True), title=title, says="with 80 % intervals")


QUESTIONS: Sequence[Question] = (
    Question(
        question="How many GPUs do I need?",
        command=f"orrery plan {LLAMA} --device h100-sxm {CHAT}",
        page="how-many-gpus.md",
        sentence=_cheapest,
        draw=_plans,
    ),
    Question(
        question="Does it fit?",
        command=f"orrery estimate {LLAMA} --device h100-sxm --tp 2 --weights fp8 --input-tokens 1024 "
        "--output-tokens 256 --concurrency 32",
        page="will-it-fit.md",
        sentence=_fits,
        draw=_memory,
    ),
    Question(
        question="Which accelerator?",
        command=f"orrery plan {LLAMA} --device h100-sxm,h200-sxm,b200-sxm,mi300x {CHAT} --all-plans",
        page="how-many-gpus.md",
        sentence=_which,
        draw=_costs,
    ),
    Question(
        question="Self-host or API?",
        command="orrery plan --model llama-3.3-70b --device h100-sxm --weights fp8 --rate 4 --input-tokens 1000 "
        "--output-tokens 250 --slo tpot:50 --api-price deepinfra/llama-3.3-70b --buy-usd 35000",
        page="own-rent-or-api.md",
        sentence=_money,
        draw=_cash,
    ),
    Question(
        question="Disaggregate?",
        command="orrery plan --disaggregate --model llama-3.1-8b --device h100-sxm --max-devices 3 "
        "--input-tokens 4000 --output-tokens 100 --slo ttft:2000 --slo tpot:12 --num-requests 100",
        page="disaggregate.md",
        sentence=_disaggregates,
        draw=_designs,
    ),
    Question(
        question="Why am I slow?",
        command="orrery calibrate compare data/slow-runs.csv",
        page="slower-than-predicted.md",
        sentence=_slow,
        draw=_causes,
    ),
    Question(
        question="What will training cost?",
        command="orrery train --model llama-3.1-8b --device h100-sxm --devices 64 --tp 2 --global-batch 512 "
        "--seq-len 8192 --sharding zero1 --train-tokens 1e12",
        page="training.md",
        sentence=_run,
        draw=_step,
    ),
    Question(
        question="How much cache for my agents?",
        command="orrery cache-size --model qwen3-32b --device h100-sxm --tp 2 --sessions example-agents "
        "--sessions-per-hour 200 --host-cache-bytes 500GB",
        page="agents.md",
        sentence=_cache,
        draw=_hits,
    ),
    Question(
        question="Autoscale?",
        command="orrery fleet --model llama-3.1-8b --device h100-sxm --input-tokens 1000 --output-tokens 200 "
        "--rate 30 --days 0.01 --replicas-min 1 --replicas-max 4 --autoscaler hpa --cold-start-s 90 "
        "--slo p99_ttft:2000",
        page="fleet.md",
        sentence=_scales,
        draw=_replicas,
    ),
    Question(
        question="My own GPU?",
        before='orrery show device rtx-4090 --as-file my-gpu.toml --title "My GPU" '
        '--fact memory_capacity_bytes="32 GB" --fact memory_bandwidth_bytes_per_s="1.79 TB/s"',
        command="orrery estimate --model llama-3.1-8b --device my-gpu.toml --input-tokens 1024 --output-tokens 256 "
        "--concurrency 8",
        page="add-a-device.md",
        sentence=_own,
        draw=_times,
    ),
)

"""Settings and traffic of public benchmark scripts that a measured row does not state.

``facts/scripts.toml`` holds the rules, each with its source; the first that holds decides.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from orrery.base.sources import Basis, Fact, Source, cited, read_toml
from orrery.catalog.releases import is_past

FILE = Path(__file__).parent / "facts" / "scripts.toml"

SETTINGS = (
    "scheduler_recv_interval",
    "num_distinct_prompts",
    "gpu_memory_utilization_frac",
    "is_budget_of_traffic",
    "max_num_prompt_tokens",
)
CONDITIONS = (
    "publisher",
    "publishers",
    "models",
    "engine",
    "mode",
    "from",
    "on",
    "ranks",
    "concurrency",
    "input_tokens",
)
KEYS = frozenset({*CONDITIONS, "source", "at", *SETTINGS})
ANY = (0.0, inf)


@cache
def _rules() -> tuple[Mapping[str, Any], ...]:
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    return tuple(
        {**rule, "source": cited(f"scripts.toml: the rule of {rule.get('engine')}", rule, KEYS, sources)}
        for rule in raw["rule"]
    )


def script_setting(
    setting: str,
    *,
    engine: str,
    version: str,
    mode: str,
    generation: str,
    ranks: int,
    concurrency: float,
    input_tokens: float = 0.0,
    published: str = "",
    model: str = "",
) -> Fact | None:
    """Value of a setting in public scripts, by concurrency, prompts and attention ranks; None where they set none.
    ``published``: where the run was, for rules about publishers' scripts; ``model``: for rules about one model's.

    A rule with a ``publisher`` is about that one's runs; one with ``publishers`` is about runs of theirs and those that
    do not say whose they are, for somebody else's script leaves the engine's default.
    """
    for rule in _rules():
        if (
            setting in rule
            and rule["engine"] == engine
            and rule["mode"] == mode
            and is_past(rule.get("from", "0"), version)
            and generation in rule.get("on", (generation,))
            and _holds(rule.get("ranks", ANY), ranks)
            and _holds(rule.get("concurrency", ANY), concurrency)
            and _holds(rule.get("input_tokens", ANY), input_tokens)
            and published.startswith(rule.get("publisher", ""))
            and (not published or published.startswith(tuple(rule.get("publishers", ("",)))))
            and fnmatchcase(model.casefold(), rule.get("models", "*"))
        ):
            return Fact(name=setting, value=rule[setting], basis=Basis.STATED, source=rule["source"], at=rule["at"])
    return None


def _holds(ends: Sequence[float], value: float) -> bool:
    least, most = ends
    return least <= value <= most

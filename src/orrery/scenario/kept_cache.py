"""The part of its cache that a scenario keeps: shares for all, by layer and head, or a budget of chosen positions."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.units import percent
from orrery.base.units import text as in_units
from orrery.base.user_file import is_user_file, read_user_text, user_path
from orrery.base.user_text import csv_lines
from orrery.execution.compression import Compression, compressing_s
from orrery.execution.formats import bytes_per_element
from orrery.execution.kv_selection import (
    WAYS,
    WINDOW_TOKENS,
    AttentionLaw,
    Way,
    chosen,
    drawn_maps,
    recall_frac,
    scoring,
)
from orrery.execution.layout import Deployment
from orrery.models.model import Model, SoftmaxAttention
from orrery.scenario.schema import Scenario
from orrery.scenario.tensor_file import tensors_in

MAX_BYTES = 10_000_000
MAX_KEYS, LATER_TOKENS, NUM_DRAWN = 4096, 32, 3
"""Drawn maps: keys (a longer prompt's are scaled down with its budget), later queries, and maps."""

MAX_SCORES = 2**27


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Share of later attention that the kept positions hold, beside other choices of as many."""

    way: Way
    budget_tokens: int
    recall_fracs: dict[str, float]  # by way
    maps: str  # where they come from

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return {
            "way": self.way,
            "budget_tokens": self.budget_tokens,
            "recall_frac": self.recall_fracs[self.way],
            "recall_fracs": self.recall_fracs,
            "maps": self.maps,
        }


KEPT_CACHE = (
    "kv_kept_tokens",
    "kv_kept_bytes",
    "kv_kept_layers",
    "kv_selection",
    "kv_budget_tokens",
    "attention_map",
)
"""Settings of a cache that keeps less than all."""


def compression_of(scenario: Scenario, model: Model) -> Compression:
    """Return what is kept of a prompt; all of it where nothing is said."""
    _refuse(scenario)
    bytes_frac = scenario.kv_kept_bytes or 1.0
    if scenario.kv_kept_layers is not None:
        bytes_frac = float(np.mean(kept_by_layer(scenario.kv_kept_layers, model)))
    if scenario.kv_selection is None:
        return Compression(kept_tokens_frac=scenario.kv_kept_tokens or 1.0, kept_bytes_frac=bytes_frac)
    blocks = [b for b in model.blocks if isinstance(b.mixer, SoftmaxAttention)]
    if not blocks:
        raise ScenarioError(f"kv_selection: {model.name} has no layer of plain attention to choose positions in.")
    flops = moved = 0.0
    if scenario.kv_selection == "snapkv":
        for block in blocks:
            mixer = cast(SoftmaxAttention, block.mixer)
            keys = mixer.cache_elements_per_token / 2.0 * bytes_per_element(scenario.kv or "bf16") * block.count
            one = scoring(mixer.num_heads, mixer.head_size, block.count, keys)
            flops, moved = flops + one[0], moved + one[1]
    return Compression(
        budget_tokens=scenario.kv_budget_tokens or 0,
        window_tokens=min(WINDOW_TOKENS, scenario.kv_budget_tokens or WINDOW_TOKENS),
        kept_bytes_frac=bytes_frac,
        flops_per_token=flops,
        score_bytes_per_token=moved,
    )


def _refuse(scenario: Scenario) -> None:
    if scenario.kv_selection is None:
        for name in ("kv_budget_tokens", "attention_map"):
            if getattr(scenario, name) is not None:
                raise ScenarioError(f'{name}: nothing is chosen; write kv_selection = "snapkv" beside it.')
    elif scenario.kv_selection not in WAYS:
        raise ScenarioError(f"kv_selection: got {scenario.kv_selection!r}; write one of {', '.join(WAYS)}.")
    elif scenario.kv_budget_tokens is None:
        raise ScenarioError("kv_selection: says how, not how many; write kv_budget_tokens = 1024 beside it.")
    elif scenario.kv_kept_tokens is not None:
        raise ScenarioError("kv_selection and kv_kept_tokens exclude each other; keep one.")
    if scenario.kv_kept_layers is not None and scenario.kv_kept_bytes is not None:
        raise ScenarioError("kv_kept_layers and kv_kept_bytes exclude each other; keep one.")


def kept_by_layer(file: str, model: Model) -> tuple[float, ...]:
    """The kept share of each layer with attention, the mean of its heads where the file has them."""
    path = user_path(file.strip())
    if not is_user_file(path):
        raise ScenarioError(
            f"kv_kept_layers: got {file!r}, which is no file; write a file with a line a layer and a share for each "
            "head, or one."
        )
    found = _shares(path)
    blocks = [b for b in model.blocks if isinstance(b.mixer, SoftmaxAttention)]
    layers = sum(b.count for b in blocks)
    heads = {1, *(cast(SoftmaxAttention, b.mixer).num_kv_heads for b in blocks)}
    if len(found) != layers or not {len(row) for row in found} <= heads:
        raise ScenarioError(
            f"kv_kept_layers: {path.name}: {len(found)} lines of up to {max(map(len, found))} shares, but {model.name} "
            f"has {layers} layers of attention; write a line for each, with one share or {max(heads)} (key heads)."
        )
    return tuple(sum(row) / len(row) for row in found)


def _shares(path: Path) -> tuple[tuple[float, ...], ...]:
    where = f"kv_kept_layers: {path.name}"
    lines = csv_lines(read_user_text(path, "file of kept shares", MAX_BYTES), where)
    try:
        found = tuple(tuple(float(cell) for cell in row if cell.strip()) for _, row in lines)
    except ValueError:
        found = ()
    if not found or not all(row and all(0.0 < share <= 1.0 for share in row) for row in found):
        raise ScenarioError(f"{where}: write a line a layer, and shares above 0, up to 1.")
    return found


def selected(scenario: Scenario, prompt_tokens: int) -> Selected | None:
    """Choose on maps, the user's or drawn ones; None where nothing is chosen."""
    if scenario.kv_selection is None or scenario.kv_budget_tokens is None:
        return None
    way = cast(Way, scenario.kv_selection)
    if scenario.attention_map is not None:
        fracs = _on_file(scenario.attention_map, scenario.kv_budget_tokens, prompt_tokens)
        maps = scenario.attention_map
    else:
        fracs = _on_drawn(prompt_tokens, scenario.kv_budget_tokens, scenario.seed or 0)
        maps = "drawn, with heavy hitters (assumed)"
    return Selected(way=way, budget_tokens=scenario.kv_budget_tokens, recall_fracs=fracs, maps=maps)


@lru_cache(maxsize=64)
def _on_drawn(prompt_tokens: int, budget: int, seed: int) -> dict[str, float]:
    keys = max(2, min(prompt_tokens, MAX_KEYS))
    scaled = max(1, round(budget * keys / max(prompt_tokens, 1)))
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    for draw in range(NUM_DRAWN):
        maps, _ = drawn_maps(AttentionLaw(), keys, LATER_TOKENS, seed * NUM_DRAWN + draw)
        for way, recall in _recalls(maps, LATER_TOKENS, scaled, draw).items():
            found[way].append(recall)
    return {way: sum(values) / len(values) for way, values in found.items()}


def _recalls(maps: NDArray[np.float64], later: int, budget: int, seed: int) -> dict[str, float]:
    scores, following = maps[:, :-later], maps[:, -later:]
    return {way: recall_frac(following, chosen(way, scores, budget, seed=seed)) for way in WAYS}


def _on_file(file: str, budget: int, prompt_tokens: int) -> dict[str, float]:
    """Maps of a file: the first half of its queries scores, the second half is what comes later."""
    tensors = list(tensors_in(user_path(file)))
    array: NDArray[Any] = np.asarray(tensors[0].read(), dtype=np.float64) if tensors else np.zeros((0, 0, 0))
    if array.ndim != 3 or array.shape[1] < 2 or array.size > MAX_SCORES or array.min(initial=0.0) < 0.0:
        raise ScenarioError(
            f"attention_map: {file}: write attention weights of (heads, queries, keys), none below 0, with 2 queries "
            f"or more, at most {MAX_SCORES:,} in all; got shape {array.shape}."
        )
    later = array.shape[1] // 2
    scaled = max(1, round(budget * array.shape[2] / max(prompt_tokens, 1)))
    return _recalls(array, later, scaled, 0)


def compression_notes(scenario: Scenario, deployment: Deployment) -> tuple[str, ...]:
    """Sentences about the choice: its recall beside other choices, and its price."""
    prompt = scenario.input_tokens or 0
    found = selected(scenario, prompt) if prompt else None
    if found is None:
        return ()
    if found.budget_tokens >= prompt:
        return (f"kv_selection: no effect: a prompt of {prompt:,} tokens is within the budget",)
    others = ", ".join(f"{way} {percent(frac)}" for way, frac in found.recall_fracs.items() if way != found.way)
    price_s = compressing_s(deployment, deployment.compression, prompt)
    return (
        f"kv_selection: {found.way} keeps {found.budget_tokens:,} of {prompt:,} positions, which hold "
        f"{percent(found.recall_fracs[found.way])} of what later tokens attend to ({others}; maps: {found.maps}); "
        f"choosing takes {in_units(price_s, 's')} a prompt; measure the quality of your task",
    )

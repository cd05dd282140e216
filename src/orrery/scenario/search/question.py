"""Checked inputs of a search, and the space, limits and devices that they name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_file import user_path
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.catalog.named_files import is_own_file
from orrery.hardware.device import Device
from orrery.numerics.registry import get_format
from orrery.planner.bits.layer import layers_of
from orrery.predictors.cells.darts import darts
from orrery.predictors.cells.mbconv import mbconv, mobilenet_v2
from orrery.predictors.cells.nas_bench_201 import nas_bench_201
from orrery.scenario.fields_search import METHODS, OBJECTIVES, SEARCH_BY_NAME, SPACES, TRAINED
from orrery.scenario.inputs import Inputs
from orrery.scenario.kinds import Count, Number, Word
from orrery.scenario.resolve import words
from orrery.scenario.search import blocks, formats, images, own, shapes
from orrery.scenario.search.costs import Costs
from orrery.scenario.search.predicted import check_predictor, few_shot


class SearchQuestion(Inputs, table=SEARCH_BY_NAME):
    """A space, devices, what is best, limits, and how it is searched."""

    space: Word = None
    device: Word = None
    objective: Word = None
    method: Word = None
    scores: Word = None
    predictor: Word = None
    measurements: Word = None
    train_steps: Count = None
    model: Word = None
    formats: Word = None
    batch: Count = None
    tokens: Count = None
    seq_len: Count = None
    concurrency: Count = None
    input_tokens: Count = None
    output_tokens: Count = None
    weights: Word = None
    kv: Word = None
    tp: Count = None
    engine: Word = None
    latency_s: Number = None
    latency_ratio: Number = None
    energy_j: Number = None
    energy_ratio: Number = None
    memory_bytes: Number = None
    memory_ratio: Number = None
    max_parameters: Number = None
    min_score: Number = None
    min_score_ratio: Number = None
    first_parameters: Number = None
    population: Count = None
    generations: Count = None
    steps: Count = None
    runs: Count = None
    seed: Count = None
    seeds: Count = None


IMAGE_SETTINGS = frozenset({"batch"})
BLOCK_SETTINGS = ("model", "concurrency", "input_tokens", "output_tokens", "weights", "kv", "tp", "engine")
BLOCK_DEFAULTS = {"concurrency": 32, "input_tokens": 1024, "output_tokens": 256}
OF_SPACES: Mapping[str, frozenset[str]] = {
    "cells": IMAGE_SETTINGS,
    "darts": IMAGE_SETTINGS,
    "mbconv": IMAGE_SETTINGS,
    "blocks": frozenset(BLOCK_SETTINGS),
    "formats": frozenset({"model", "formats", "tokens"}),
    "transformer-shape": frozenset({"model", "seq_len", "batch", "weights"}),
    "own": frozenset[str](),
}
"""Settings that describe a space; those of others have no effect on it and are refused."""

OF_METHODS: Mapping[str, frozenset[str]] = {
    "evolution": frozenset({"population", "generations", "first_parameters"}),
    "differentiable": frozenset({"steps", "runs"}),
    "policy": frozenset({"steps"}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSetting:
    """The question with its names found."""

    inputs: SearchQuestion
    space: str
    devices: tuple[Device, ...]
    goal: str
    against: str
    costs_on: Callable[[Device], Costs]


def resolve_search(inputs: SearchQuestion) -> SearchSetting:
    """Find the space, the devices and the objectives."""
    missing = [name for name in ("space", "device") if getattr(inputs, name) is None]
    if missing:
        examples = ", ".join(f"{name} = {SEARCH_BY_NAME[name].example}" for name in missing)
        raise ScenarioError(f"{', '.join(missing)}: missing; write {examples}.")
    space = str(inputs.space)
    kind = "own" if is_own_file(space) else space
    if kind not in OF_SPACES:
        raise ScenarioError(f"space: got {space[:80]!r}; write {', '.join(SPACES)}, or a .toml file.")
    _refuse_others(inputs, kind)
    devices = tuple(get_device(name) for name in words(str(inputs.device)))
    check_predictor(inputs.predictor, inputs.measurements, kind, len(devices))
    goal, against = _objectives(inputs.objective or "score,latency")
    return SearchSetting(
        inputs=inputs,
        space=space,
        devices=devices,
        goal=goal,
        against=against,
        costs_on=_costs_on(inputs, kind),
    )


def _costs_on(inputs: SearchQuestion, kind: str) -> Callable[[Device], Costs]:
    batch, seed = inputs.batch or 1, inputs.seed or 0
    if kind == "own":
        read = own.read_space(user_path(str(inputs.space)))
        return lambda device: own.costs_of(read, device)
    if kind == "blocks":
        given = {name: getattr(inputs, name) for name in BLOCK_SETTINGS if getattr(inputs, name) is not None}
        return lambda device: blocks.costs_of(BLOCK_DEFAULTS | given | {"device": device.name})
    if kind == "formats":
        named = tuple(dict.fromkeys(get_format(word).name for word in words(inputs.formats or "")))
        if len(named) < 2:
            raise ScenarioError(f'formats: got {inputs.formats!r}; write two or more, such as formats = "bf16,fp8".')
        is_toy = inputs.scores in TRAINED
        if is_toy and inputs.model is not None:
            raise ScenarioError(f"model: scores = {inputs.scores} train a small network of their own; leave model out.")
        tokens = inputs.tokens or 16
        layers = formats.toy_layers(named, tokens) if is_toy else layers_of(get_model(_model(inputs)), tokens)
        return lambda device: formats.costs_of(layers, named, device, seed, is_toy=is_toy)
    if kind == "transformer-shape":
        model, format = get_model(_model(inputs)), inputs.weights or "bf16"
        return lambda device: shapes.costs_of(model, device, inputs.seq_len or 4096, batch, format)
    if kind == "mbconv":
        return lambda device: images.costs(mbconv(), device, batch, reference=mobilenet_v2())
    if inputs.measurements is not None:
        return lambda device: _predicted(device, user_path(str(inputs.measurements)), batch, seed)
    return lambda device: images.costs({"cells": nas_bench_201, "darts": darts}[kind](), device, batch)


def _predicted(device: Device, measurements: Path, batch: int, seed: int) -> Costs:
    """The space of cells, its latencies by a predictor that knows the machine from timings."""
    predict, note = few_shot(measurements, device, batch, seed)
    found = images.costs(nas_bench_201(), device, batch, predict)
    return replace(found, notes=(note, "energy: by the kernel rules of the device that is named"))


def _model(inputs: SearchQuestion) -> str:
    if inputs.model is None:
        raise ScenarioError(f"model: missing; write model = {SEARCH_BY_NAME['model'].example}.")
    return inputs.model


def _objectives(text: str) -> tuple[str, str]:
    found = list(words(text))
    if not found or len(found) > 2 or any(name not in OBJECTIVES for name in found):
        raise ScenarioError(f"objective: got {text[:80]!r}; write one or two of {', '.join(OBJECTIVES)}.")
    goal = found[0]
    return goal, found[1] if len(found) > 1 else ("score" if goal != "score" else "latency")


def _refuse_others(inputs: SearchQuestion, kind: str) -> None:
    """Settings of other spaces and methods have no effect, and are said so."""
    method = inputs.method or ""
    if method and method not in METHODS:
        raise ScenarioError(f"method: got {method[:80]!r}; write {', '.join(METHODS)}.")
    for about, each, mine in (("space", OF_SPACES, kind), ("method", OF_METHODS, method)):
        own_ones = each.get(mine, frozenset())
        for name in sorted(frozenset[str]().union(*each.values()) - own_ones):
            if getattr(inputs, name) is not None:
                takers = ", ".join(key for key, names in each.items() if name in names)
                got = mine if mine else "program"
                raise ScenarioError(f"{name}: has no effect with {about} {got}; it belongs to {takers}: leave it out.")

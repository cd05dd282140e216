"""Learned weights of words for layers and for claims, as one small file of arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "weights.npz"

Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weights:
    """Layers by words, and claims by features."""

    layers: tuple[str, ...]
    places: Mapping[str, int]  # of words in the arrays
    rarities: Array
    layer_weights: Array  # a row a layer, a column a word
    layer_biases: Array
    sharpness_ratio: float  # of scores, so that their softmax is right as often as it says
    claim_weights: Mapping[str, float]
    technique_curve: tuple[float, float, float]  # slope and offset from a score to odds, and the highest score seen
    mark: str  # changes with the file


@cache
def shipped() -> Weights:
    """The weights that come with orrery."""
    with np.load(FILE, allow_pickle=False) as raw:
        found = {name: raw[name] for name in raw.files}
    scales = found["layer_scales"].astype(np.float32)[:, None]
    slope, offset, highest = map(float, found["technique_curve"])
    return Weights(
        layers=tuple(str(name) for name in found["layers"]),
        places={str(word): i for i, word in enumerate(found["words"])},
        rarities=found["rarities"].astype(np.float32),
        layer_weights=found["layer_weights"].astype(np.float32) * scales,
        layer_biases=found["layer_biases"].astype(np.float32),
        sharpness_ratio=float(found["sharpness_ratio"]),
        claim_weights={
            str(name): float(weight)
            for name, weight in zip(found["claim_features"], found["claim_weights"], strict=True)
        },
        technique_curve=(slope, offset, highest),
        mark=sha256(FILE.read_bytes()).hexdigest()[:16],
    )

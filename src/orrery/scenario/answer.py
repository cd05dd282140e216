"""Answers as JSON: one serialiser for the terminal, Python, and every later window."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, cast

import numpy as np


def to_json(value: Any) -> Any:
    """Plain data: dataclasses become objects, arrays lists, and what is not finite ``null``."""
    if value is None or isinstance(value, bool | str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): to_json(v) for k, v in cast(Mapping[Any, Any], value).items()}
    if isinstance(value, Sequence | frozenset | set):
        return [to_json(v) for v in cast(Sequence[Any], value)]
    if isinstance(value, np.ndarray | np.generic):
        return to_json(cast(Any, value).tolist())
    raise TypeError(f"no JSON form for {type(value).__name__}")

"""What is left out when a campaign is scored: the campaign; or a part of it where it is all that is known.

Without the only campaign of an engine, or of a generation of devices, nothing at all would be known of either, which is
another question. Then models are left out instead, in up to ``MOST`` groups so that no model is on both sides; or
releases, where there is one model. What was left out is said beside every score.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from engine_rows import Measured

MOST = 4
CAMPAIGN, MODEL, VERSION, NOTHING = "campaign", "model", "version", "nothing"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fold:
    """Rows that are scored together by constants that saw none of them."""

    campaign: str
    what: str  # that was left out
    held: np.ndarray  # mask over all rows


def folds(rows: Sequence[Measured]) -> list[Fold]:
    """Every campaign's folds; together they hold each row once."""
    names = np.array([r.campaign for r in rows])
    engines = np.array([r.deployment.engine.name for r in rows])
    generations = np.array([r.deployment.cluster.device.generation for r in rows])
    found: list[Fold] = []
    for name in sorted(set(names.tolist())):
        mine = names == name
        first = int(np.flatnonzero(mine)[0])
        others = ~mine
        if (others & (engines == engines[first])).any() and (others & (generations == generations[first])).any():
            found.append(Fold(campaign=name, what=CAMPAIGN, held=mine))
        else:
            found += _parts(name, rows, mine)
    return found


def _parts(name: str, rows: Sequence[Measured], mine: np.ndarray) -> list[Fold]:
    by: tuple[tuple[str, Callable[[Measured], str]], ...] = (
        (MODEL, lambda r: r.model),
        (VERSION, lambda r: r.deployment.engine.version),
    )
    for what, word in by:
        words = np.array([word(r) for r in rows])
        kinds = sorted(set(words[mine].tolist()))
        if len(kinds) > 1:
            groups = [kinds[i::MOST] for i in range(min(MOST, len(kinds)))]
            return [Fold(campaign=name, what=what, held=mine & np.isin(words, group)) for group in groups]
    return [Fold(campaign=name, what=NOTHING, held=mine)]

"""Recipes' errors over several seeds: their means, and how far they lie apart."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from orrery.scenario.quantize_layers import Measurement

Key = tuple[str, str, str, str, str]


def over_seeds(runs: Sequence[Sequence[Measurement]]) -> tuple[Measurement, ...]:
    """Each layer, format and recipe once: means of its errors over the runs that have it, and the ends of its signal.

    ``runs`` differ in their seed alone; a recipe that was left out with some seeds is the mean over the others.
    """
    grouped: dict[Key, list[Measurement]] = {}
    for run in runs:
        for one in run:
            grouped.setdefault((one.source, one.tensor, one.format, one.activations, one.recipe), []).append(one)
    return tuple(_mean(found) for found in grouped.values())


def _mean(found: Sequence[Measurement]) -> Measurement:
    signal = [one.output_sqnr_db for one in found]
    means: Mapping[str, float] = {
        name: fmean(getattr(one, name) for one in found)
        for name in ("output_sqnr_db", "output_error_frac", "weights_error_frac")
    }
    return replace(
        found[0], **means, output_sqnr_low_db=min(signal), output_sqnr_high_db=max(signal), num_seeds=len(found)
    )

"""Spread of the lengths in data sets that load generators draw requests from."""

from functools import cache
from pathlib import Path

from orrery.base.sources import Fact, read_facts

FILE = Path(__file__).parent / "facts" / "datasets.toml"


@cache
def dataset_facts() -> dict[str, Fact]:
    """Standard deviation over mean of each data set's prompts and answers, with its source."""
    return dict(read_facts(FILE)[0])


def std_ratios_of(dataset: str) -> tuple[float, float]:
    """Standard deviation over mean of a data set's prompts and answers; zeros where nothing is known of it."""
    facts, name = dataset_facts(), dataset.casefold()
    prompts, answers = (facts.get(f"{name}_{side}_std_ratio") for side in ("input", "output"))
    return (float(prompts.value), float(answers.value)) if prompts and answers else (0.0, 0.0)

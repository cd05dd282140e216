"""Every fact file loads, names its sources, and uses every source that it names."""

import tomllib
from pathlib import Path

from battery import over

from orrery.base.sources import read_facts

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "src").rglob("facts/**/*.toml"))
each = over(FILES, named=lambda p: "/".join(p.parts[-2:]))


def borrowed(node):
    """Every source key that a file's facts and calibrations cite, at any depth."""
    if isinstance(node, dict):
        if node.keys() & {"backend", "engine"} and isinstance(node.get("source"), str):
            yield node["source"]  # a rule; its "from" is a release
        for key in ("from", "source"):
            if isinstance(word := node.get(key), str) and node.keys() & {
                "value",
                "constants",
                "trees",
                "layout",
                "encoder_layers",
                "lookups",
            }:
                yield word
        for value in node.values():
            yield from borrowed(value)
    elif isinstance(node, list):
        for value in node:
            yield from borrowed(value)


def test_there_are_fact_files():
    assert FILES


@each
def test_every_source_is_named_and_used(path):
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    sources = raw.pop("sources", {})
    cited = set(borrowed(raw)) | ({"config"} if raw.keys() & {"published", "same_as"} else set())
    assert cited - {"config"} <= sources.keys(), f"cited but not described: {sorted(cited - sources.keys())}"
    assert sources.keys() <= cited, f"described but never cited: {sorted(sources.keys() - cited)}"
    for key, source in sources.items():
        assert source.get("title"), f"{key} has no title"
        assert source.get("url") or source.get("retrieved"), f"{key} says neither where nor when"


@each
def test_every_fact_is_well_formed(path):
    facts, _ = read_facts(path)
    for fact in facts.values():
        assert fact.cite()

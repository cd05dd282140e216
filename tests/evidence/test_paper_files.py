"""What papers state: every file loads, every input and claim says where it stands, and nothing unknown gets through."""

import re
import tomllib
from functools import cache

import pytest
from battery import over

from orrery.base.errors import FactError, UnknownName
from orrery.base.sources import Basis
from orrery.base.technique import discover, technique_folders
from orrery.base.units import UNIT_WORDS
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.library import FOLDER, TEXT, folder_name
from orrery.evidence.paper_file import get_paper, paper_keys, read_paper
from orrery.evidence.prediction import reproduced_keys
from orrery.evidence.words import INPUTS, READINGS, UNITS
from orrery.models.image_networks import BUILDERS
from orrery.web.papers.filed import CODE_SOURCES

KEYS = paper_keys()
every = over(KEYS)

GOOD = """
title = "A paper"
year = 2024
layer = "serving"
kind = "system"
fit = "core"
mechanism = "One thing. Then another."
techniques = ["chunked-prefill"]

[sources.paper]
title = "A paper"
retrieved = "2026-11"

[[setup]]
name = "small"
model = { value = "opt-13b", from = "paper", at = "table 1" }
slo_ttft_s = { value = "250 ms", from = "paper", at = "table 1" }
batches_swept = { value = "1, 4, 16", from = "paper", at = "figure 2" }

[[setup]]
name = "large"
like = "small"
model = { value = "opt-66b", from = "paper", at = "table 1" }

[[claim]]
id = "faster"
metric = "throughput_ratio"
reported = [2.0, 4.6]
unit = "ratio"
setup = "large"
given = { num_batch = 4 }
from = "paper"
at = "section 6"

[unstated]
lengths = "a reader takes the chat trace"
"""


def written(folder, text):
    path = folder / "a-paper.toml"
    path.write_text(text)
    return path


def test_the_papers_of_the_serving_layer_are_there():
    assert {"distserve", "splitwise", "sarathi-serve", "nanoflow", "layered-prefill", "tokenweave"} <= set(KEYS)
    files = {p for p in FOLDER.glob("*/*") if "__pycache__" not in p.parts}
    assert {p.suffix for p in files} == {".py", ".toml"}
    homeless = {p.name for p in FOLDER.iterdir() if p.is_dir() and not (p / "paper.toml").exists()}
    assert homeless <= {"shared", "__pycache__"}


@every
def test_a_file_loads_and_says_what_it_leaves_open(key):
    paper = get_paper(key)
    assert paper.title
    assert 2010 < paper.year < 2030
    assert re.fullmatch(r"(\d{4}\.\d{4,5})?", paper.arxiv)
    assert paper.url or paper.arxiv
    assert paper.mechanism.count(". ") == 1, "two sentences"
    assert paper.mechanism.endswith(".")
    assert all(len(text) > 20 for text in paper.unstated.values())


@every
def test_a_paper_is_run_again_or_says_what_is_missing(key):
    """Run again: with techniques, claims, and what a reader has to assume. Else: what orrery lacks, in full."""
    paper = get_paper(key)
    if key in reproduced_keys():
        assert not paper.missing
        assert paper.techniques
        assert paper.claims
        assert paper.unstated
    else:
        assert len(paper.missing) > 40
        assert all(claim.missing for claim in paper.claims)
    assert all(len(claim.missing) > 20 for claim in paper.claims if claim.missing)


@cache
def technique_names():
    return {technique.name for folder in technique_folders() for technique in discover(folder)}


@over(reproduced_keys())
def test_a_paper_that_is_run_again_says_what_it_gains_and_costs(key):
    """Where none of its techniques is a file that says so, the paper's own file does."""
    paper = get_paper(key)
    has_file = any(name in technique_names() for name in paper.techniques)
    assert has_file or min(len(paper.gains), len(paper.costs)) > 20


@every
def test_gains_and_costs_are_a_sentence_each(key):
    paper = get_paper(key)
    assert bool(paper.gains) == bool(paper.costs)
    for message in filter(None, (paper.gains, paper.costs)):
        assert len(message) > 20
        assert message.endswith(".")
        assert message not in paper.mechanism


@over(reproduced_keys())
def test_a_curve_of_a_cost_says_that_less_is_better(key):
    """Else the reader is told that it helps where it hurts."""
    paper = get_paper(key)
    if paper.sweep:
        (claim,) = (claim for claim in paper.claims if claim.id == paper.sweep.claim)
        is_cost = claim.reading == "less than" or claim.metric.endswith(("overhead", "drop", "latency_increase"))
        assert paper.sweep.better == "less" or not is_cost


@every
def test_every_input_says_where_it_stands(key):
    for setup in get_paper(key).setups.values():
        assert setup.inputs, setup.name
        for name, fact in setup.inputs.items():
            assert name in INPUTS
            if fact.basis is Basis.ASSUMED:
                assert fact.note, f"{setup.name}: {name}"
            else:
                assert fact.source, f"{setup.name}: {name}"
                assert fact.at, f"{setup.name}: {name}"


@every
def test_every_claim_has_a_value_a_unit_and_a_place(key):
    for claim in get_paper(key).claims:
        assert claim.low <= claim.high
        assert claim.unit in UNITS
        assert claim.reading in READINGS
        assert claim.at
        assert claim.source.title
        assert 0 < claim.tolerance_frac <= 0.2
        assert re.fullmatch(r"[a-z0-9_]+", claim.metric)
        assert claim.unit != "frac" or claim.high <= 1, claim.id


@every
def test_every_source_is_cited(key):
    raw = tomllib.loads((FOLDER / folder_name(key) / TEXT).read_text(encoding="utf-8"))
    claims = raw.get("claim", [])
    tables = [entry for setup in raw.get("setup", []) for entry in setup.values() if isinstance(entry, dict)]
    tables += [raw[name] for name in ("authors", "organisations", "published") if name in raw]
    cited = {table["from"] for table in (*tables, *claims) if "from" in table}
    linked = raw["sources"].keys() & {*CODE_SOURCES}  # the paper's page leads to its code
    assert cited | linked == raw["sources"].keys() or not claims


@every
def test_devices_and_single_models_are_in_the_catalogue(key):
    absent = {"mistral-large-instruct (123B)"}  # its paper's [unstated] says so
    for setup in [*get_paper(key).setups.values(), *(claim.setup for claim in get_paper(key).claims)]:
        for line in ("device", "prefill_device", "decode_device"):
            if word := setup.word(line):
                assert get_device(word)
        if (word := setup.word("model")) and word not in absent:
            assert word in BUILDERS or get_model(word)  # image networks, or models of language


@every
def test_the_headline_is_among_the_claims(key):
    claims = get_paper(key).claims
    assert not claims or [claim for claim in claims if claim.origin == "abstract"]


def test_inputs_are_named_with_their_units():
    for name, meaning in INPUTS.items():
        assert meaning
        numeric = name.rsplit("_", 1)[-1] in UNIT_WORDS or name.startswith(("num_", "max_num_"))
        assert numeric or not re.search(r"_(ms|gb|tflops|pct|percent)$", name), name


def test_distserve_repeats_table_1():
    paper = get_paper("distserve")
    requested = {
        "sharegpt-opt-13b": (0.25, 0.1),
        "sharegpt-opt-66b": (2.5, 0.15),
        "sharegpt-opt-175b": (4.0, 0.2),
        "humaneval-opt-66b": (0.125, 0.2),
        "longbench-opt-66b": (15.0, 0.15),
    }
    for name, (ttft_s, tpot_s) in requested.items():
        setup = paper.setups[name]
        assert (setup.number("slo_ttft_s"), setup.number("slo_tpot_s")) == (ttft_s, tpot_s)
        assert setup.number("link_bytes_per_s") == pytest.approx(25e9 / 8)


def test_stated_ratios_follow_from_the_stated_times():
    claims = {claim.id: claim for claim in get_paper("tokenweave").claims}
    for name, claim in claims.items():
        if name.endswith("-speedup"):
            stem = name.removesuffix("-speedup")
            assert claims[f"{stem}-baseline"].low / claims[stem].low == pytest.approx(claim.low, abs=0.001)


def test_splitwise_clusters_of_one_budget_cost_the_same():
    papers = get_paper("splitwise").setups
    old = papers["iso-cost-baseline-a100"]
    new = papers["iso-power-baseline-h100"]
    cost = [s.number("num_machines") * s.number("machine_usd_per_s") * 3600 for s in (old, new)]
    assert cost[0] == pytest.approx(cost[1], rel=0.01)


def test_a_setup_builds_on_another_and_a_claim_on_its_setup(tmp_path):
    paper = read_paper(written(tmp_path, GOOD))
    small, large = paper.setups["small"], paper.setups["large"]
    assert (small.word("model"), large.word("model")) == ("opt-13b", "opt-66b")
    assert large.number("slo_ttft_s") == 0.25
    assert large.numbers("batches_swept") == (1.0, 4.0, 16.0)
    assert large.numbers("input_tokens_swept") == ()
    (claim,) = paper.claims
    assert (claim.low, claim.high) == (2.0, 4.6)
    assert claim.setup.number("num_batch") == 4
    assert claim.setup.inputs["num_batch"].at == "section 6"
    assert "num_batch" not in large.inputs


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("year = 2024", "yaer = 2024", r"a-paper.toml: the top: unknown key yaer"),
        ("batches_swept", "batch_sizes", r"setup small: unknown key batch_sizes"),
        ('id = "faster"', 'id = "faster"\nkind = "x"', r"claim faster: unknown key kind"),
        ("given = { num_batch = 4 }", "given = { batch = 4 }", r"claim faster: unknown key batch"),
        ('retrieved = "2026-11"', 'read = "2026-11"', r"source paper: unknown key read"),
        ('retrieved = "2026-11"', "", r"source paper: needs retrieved"),
        ('from = "paper"\nat = "section 6"', 'from = "other"\nat = "section 6"', r"no \[sources.other\]"),
        ('{ value = "opt-13b", from = "paper", at = "table 1" }', '{ value = "opt-13b" }', r"model names no source"),
        ('{ value = "opt-13b", from = "paper", at = "table 1" }', '{ value = "opt-13b", from = "paper" }', "where in"),
        ('"250 ms"', "250", r"slo_ttft_s: write the unit too"),
        ('at = "section 6"', "", r"claim faster: needs at"),
        ('unit = "ratio"', 'unit = "x"', r"claim faster: unit 'x' is none of"),
        ('unit = "ratio"', 'unit = "ratio"\nreading = "roughly"', r"reading 'roughly' is none of"),
        ('unit = "ratio"', 'unit = "ratio"\ntolerance_frac = 0.3', r"tolerance_frac is 0.3; 0.2 is the most"),
        ('unit = "ratio"', 'unit = "ratio"\njudged = { as = "echo", because = "x" }', r"judged 'echo' is none of"),
        ('unit = "ratio"', 'unit = "ratio"\njudged = { as = "anchored" }', r"claim faster: judged: needs because"),
        ('unit = "ratio"', 'unit = "ratio"\njudged = "anchored"', r"judged is 'anchored'; write"),
        ('unit = "ratio"', 'unit = "ratio"\nassumed = { range = [2, 1], because = "x" }', r"range is \[2, 1\]"),
        ('unit = "ratio"', 'unit = "ratio"\nis_increase = 1', r"is_increase is 1; write true or false"),
        ("reported = [2.0, 4.6]", "reported = [4.6, 2.0]", r"write a number, or \[low, high\]"),
        ("reported = [2.0, 4.6]", 'reported = "4.6"', r"write a number, or \[low, high\]"),
        ("reported = [2.0, 4.6]", "reported = [true, true]", r"write a number, or \[low, high\]"),
        ('setup = "large"', 'setup = "medium"', r"there is no setup 'medium' above; known: small, large"),
        ('like = "small"', 'like = "large"', r"setup large: there is no setup 'large' above"),
        ('name = "large"', 'name = "small"', r"there are two setups 'small'"),
        ("[unstated]", GOOD[GOOD.index("[[claim]]") : GOOD.index("[unstated]")] + "[unstated]", r"two of claim faster"),
    ],
)
def test_what_cannot_be_trusted_is_refused(tmp_path, old, new, says):
    assert old in GOOD
    with pytest.raises(FactError, match=says):
        read_paper(written(tmp_path, GOOD.replace(old, new, 1)))


def test_a_claim_says_how_its_verdict_is_found(tmp_path):
    lines = 'judged = { as = "anchored", because = "one" }\nassumed = { range = [1.5, 3], because = "two" }'
    (claim,) = read_paper(written(tmp_path, GOOD.replace('unit = "ratio"', f'unit = "ratio"\n{lines}'))).claims
    assert (claim.judged, claim.assumed, claim.because) == ("anchored", (1.5, 3.0), "one; two")


def test_an_unknown_paper_is_told_its_neighbours():
    with pytest.raises(UnknownName, match="distserve"):
        get_paper("distserv")

"""Paper files: set-ups and claims, one TOML file a paper: ``orrery_papers/KEY/paper.toml``.

    title = "…"
    year = 2024
    authors = { value = ["…"], from = "citations", at = "…" }   # and published: see orrery.evidence.bibliography
    arxiv = "2401.09670"
    layer = "serving"
    kind = "system"                 # one of KINDS
    fit = "core"                    # one of FITS
    mechanism = "two sentences in our own words"
    techniques = ["disaggregated"]
    gains = "what it gains, in a sentence"      # needed where no technique file says it
    costs = "what it costs, or when it does not pay"
    use = "orrery …"                # a command that puts it into a deployment of the reader's, to be changed
    no_use = "…"                    # or why there is none
    missing = "…"                   # only where nothing is run again: exactly what orrery lacks for it

    [sources.paper]
    title = "…"

    [[setup]]                       # what was run; every line but name and note is a fact with its place
    name = "sharegpt-opt-13b"
    model = { value = "opt-13b", from = "paper", at = "table 1" }

    [[claim]]                       # what came out
    id = "rate-ratio-vllm-sharegpt"
    metric = "request_rate_ratio"
    reported = [2.0, 4.6]
    unit = "ratio"
    baseline = "vllm"
    setup = "sharegpt-opt-13b"
    from = "paper"
    at = "section 6.2"

    judged = { as = "anchored", because = "…" }             # one of STATED_VERDICTS: why the verdict is not a plain one
    assumed = { range = [1.2, 2.0], because = "…" }         # predicted at the ends of an assumption that decides
    is_increase = true              # of a share: it may exceed one, so that nothing remains of it

    [[claim]]                       # a claim that is not run again has no set-up of need, and says why
    id = "accuracy"
    …
    missing = "the accuracy of trained weights, which the authors keep"

    [sweep]                         # where the technique helps and where it hurts: one claim across one input
    claim = "rate-ratio-vllm-sharegpt"
    input = "input_mean_tokens"
    values = [256, 512, 1024, 2048]
    better = "more"                 # or "less", where the claim counts a cost; "more" unless said

    [unstated]                      # what the paper leaves open, and what a reader assumes for want of it
    fig_1_slo = "…"

A set-up may start from another one (``like``) and replace some of its lines; a claim may replace some lines of its
set-up (``given``): a bare value there stands at the claim's own place. Ratios and reductions say by how much the
paper's system is better than the baseline.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

from orrery.base.arguments import typed
from orrery.base.errors import MAX_LISTED, FactError, UnknownName, nearest
from orrery.base.sources import Fact, Source, parse_fact, read_toml
from orrery.base.user_file import is_user_file
from orrery.evidence.bibliography import UNKNOWN, Bibliography, read_bibliography
from orrery.evidence.library import FOLDER, TEXT, folder_name, own_papers_folder, paper_texts
from orrery.evidence.words import FITS, INPUTS, KINDS, READINGS, UNITS

TOLERANCE_FRAC = 0.2
"""Default tolerance of a prediction; a claim may ask for less, and none for more."""

OPTIONAL_WORDS = ("arxiv", "url", "gains", "costs", "use", "no_use", "missing")
"""Texts at the top of a paper file that may be left out."""

StatedVerdict = Literal["no evidence", "sign only", "not counted", "anchored"]

STATED_VERDICTS: tuple[StatedVerdict, ...] = get_args(StatedVerdict)
"""Verdicts that a claim's file can state, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One experiment as the paper describes it."""

    name: str
    inputs: Mapping[str, Fact]
    note: str = ""

    def word(self, name: str, default: str = "") -> str:
        """An input as text; ``default`` where the paper does not state it."""
        return str(self.inputs[name].value) if name in self.inputs else default

    def number(self, name: str, default: float = 0.0) -> float:
        """An input as a number in base units; ``default`` where the paper does not state it."""
        return float(self.inputs[name].value) if name in self.inputs else default

    def numbers(self, name: str) -> tuple[float, ...]:
        """The numbers of an input that lists several, by comma; empty where the paper does not state it."""
        return tuple(float(part) for part in self.word(name).split(",") if part.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One result that the paper reports, and where."""

    id: str
    metric: str
    low: float  # equal to high where one number is reported
    high: float
    unit: str
    baseline: str  # empty where nothing is compared
    setup: Setup
    origin: str  # key of its source in the file: "abstract" for a headline
    source: Source
    at: str
    reading: str = "value"  # one of READINGS
    tolerance_frac: float = TOLERANCE_FRAC
    judged: StatedVerdict | None = None  # a verdict other than a plain one
    assumed: tuple[float, ...] = ()  # predicted at the ends of an assumption that decides
    is_increase: bool = False  # of a share: it may exceed one
    because: str = ""  # of ``judged`` and ``assumed``
    missing: str = ""  # why nothing is predicted for it; empty where something is
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One claim predicted across one input of its set-up, everything else as stated."""

    claim: str
    input: str
    values: tuple[Fact, ...]
    better: str = "more"  # of the claim's metric: "more" or "less"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper's set-ups and claims, and what it leaves unsaid."""

    key: str
    title: str
    year: int
    layer: str
    kind: str
    fit: str
    mechanism: str
    techniques: tuple[str, ...]
    setups: Mapping[str, Setup]
    claims: tuple[Claim, ...]
    sources: Mapping[str, Source]
    bibliography: Bibliography = UNKNOWN
    arxiv: str = ""
    url: str = ""
    gains: str = ""  # empty where the technique files say it
    costs: str = ""
    use: str = ""  # a command that puts it into a deployment
    no_use: str = ""  # why there is none
    missing: str = ""  # what orrery lacks to run it again; empty where it is run
    sweep: Sweep | None = None
    unstated: Mapping[str, str] = field(default_factory=dict[str, str])  # what is missing -> what a reader assumes

    @property
    def link(self) -> str:
        """Where it can be read."""
        return self.url or f"https://arxiv.org/abs/{self.arxiv}"


def paper_keys() -> tuple[str, ...]:
    """The keys of all papers that come with orrery, sorted."""
    return tuple(sorted(map(_key, paper_texts())))


def _key(path: Path) -> str:
    """A paper's key: its folder's name, or the file's where a user keeps it."""
    return path.parent.name.replace("_", "-") if path.name == TEXT and path.parent.parent == FOLDER else path.stem


def own_paper_keys() -> tuple[str, ...]:
    """The keys of the papers that the reader has added, sorted."""
    return tuple(sorted(path.stem for path in own_papers_folder().glob("*.toml")))


@typed
def get_paper(key: str) -> Paper:
    """The paper of that key: one that comes with orrery, or one of the reader's own."""
    shipped = FOLDER / folder_name(key) / TEXT
    if _key(shipped) == key and is_user_file(shipped):
        return _retained(shipped)
    folder = own_papers_folder()
    path = folder / f"{key}.toml"
    if path.parent == folder and is_user_file(path):
        return _retained(path)
    raise UnknownName("paper", key, (*paper_keys(), *own_paper_keys()), "orrery papers list")


@cache
def _retained(path: Path) -> Paper:
    return read_paper(path)


def read_paper(path: Path) -> Paper:
    """One paper file. Refuses unknown keys, and whatever has no source or no place in it."""
    key = _key(path)
    raw, file = read_toml(path), f"{key}.toml"
    sources = {key: _source(file, key, table) for key, table in raw.pop("sources", {}).items()}
    bibliography = read_bibliography(file, raw, sources)
    setups = _setups(file, raw.pop("setup", []), sources)
    claims = tuple(_claim(file, table, setups, sources) for table in raw.pop("claim", []))
    _unique(file, "claim", [claim.id for claim in claims])
    sweep = _sweep(file, raw.pop("sweep", None), claims)
    needed = ("title", "year", "layer", "kind", "fit", "mechanism", "techniques")
    _known(file, "the top", raw, {*needed, *OPTIONAL_WORDS, "unstated"})
    _needed(file, "the top", raw, needed)
    _words(file, "the top", raw, {*needed, *OPTIONAL_WORDS} - {"year", "techniques"})
    _of_kind(file, "the top", raw, "year", int, "a number such as 2026")
    _of_kind(file, "the top", raw, "techniques", list, 'a list such as ["ring-all-reduce"]')
    _of_kind(file, "the top", raw, "unstated", dict, "a table")
    techniques: list[Any] = raw["techniques"]
    _words(file, "techniques", dict(enumerate(techniques)), range(len(techniques)))
    _words(file, "unstated", raw.get("unstated", {}), raw.get("unstated", {}))
    _one_of(file, "the top", "kind", raw["kind"], KINDS)
    _one_of(file, "the top", "fit", raw["fit"], FITS)
    return Paper(
        key=key,
        title=raw["title"],
        year=raw["year"],
        layer=raw["layer"],
        kind=raw["kind"],
        fit=raw["fit"],
        mechanism=raw["mechanism"],
        techniques=tuple(raw["techniques"]),
        setups=setups,
        claims=claims,
        sources=sources,
        sweep=sweep,
        bibliography=bibliography,
        unstated=raw.get("unstated", {}),
        **{name: raw.get(name, "") for name in OPTIONAL_WORDS},
    )


def _source(file: str, key: str, table: dict[str, str]) -> Source:
    """A document, with its title and where or when it was read."""
    _known(file, f"source {key}", table, ("title", "url", "retrieved"))
    _needed(file, f"source {key}", table, ("title", "retrieved"))
    return Source(**table)


def _setups(file: str, tables: list[dict[str, Any]], sources: Mapping[str, Source]) -> dict[str, Setup]:
    """The set-ups by name; each may build on one above it."""
    setups: dict[str, Setup] = {}
    for table in tables:
        _needed(file, "a setup", table, ("name",))
        name, lines = table["name"], {k: v for k, v in table.items() if k not in ("name", "like", "note")}
        if name in setups:
            raise FactError(f"{file}: there are two setups {name!r}.")
        inherited: Mapping[str, Fact] = {}
        if like := table.get("like"):
            inherited = _setup(file, f"setup {name}", like, setups).inputs
        inputs = _inputs(file, f"setup {name}", lines, sources)
        setups[name] = Setup(name=name, inputs={**inherited, **inputs}, note=table.get("note", ""))
    return setups


HELD = ("judged", "assumed", "is_increase")
"""Keys of a claim that say how its verdict is found."""


def _claim(file: str, table: dict[str, Any], setups: Mapping[str, Setup], sources: Mapping[str, Source]) -> Claim:
    """One claim, with the set-up that it is about."""
    _needed(file, "a claim", table, ("id",))
    where = f"claim {table['id']}"
    needed = ("id", "metric", "reported", "unit", "from", "at")
    others = {"setup", "baseline", "reading", "tolerance_frac", "given", "missing", "note"}
    _known(file, where, table, {*needed, *others, *HELD})
    _needed(file, where, table, needed if table.get("missing") else (*needed, "setup"))
    _words(file, where, table, {*needed, "setup", "baseline", "reading", "missing", "note"} - {"reported"})
    if table["from"] not in sources:
        raise FactError(f"{file}: {where}: there is no [sources.{table['from']}]; add it or name another.")
    _one_of(file, where, "unit", table["unit"], sorted(UNITS))
    _one_of(file, where, "reading", reading := table.get("reading", "value"), READINGS)
    setup = _setup(file, where, table["setup"], setups) if "setup" in table else Setup(name="", inputs={})
    if given := table.get("given"):
        here = {"from": table["from"], "at": table["at"]}
        lines: dict[str, Any] = {k: v if isinstance(v, dict) else {"value": v, **here} for k, v in given.items()}
        setup = Setup(name=setup.name, inputs={**setup.inputs, **_inputs(file, where, lines, sources)}, note=setup.note)
    low, high = _range(file, where, table["reported"], "reported")
    tolerance_frac = float(table.get("tolerance_frac", TOLERANCE_FRAC))
    if not 0.0 <= tolerance_frac <= TOLERANCE_FRAC:
        raise FactError(f"{file}: {where}: tolerance_frac is {tolerance_frac:g}; {TOLERANCE_FRAC:g} is the most.")
    return Claim(
        id=table["id"],
        metric=table["metric"],
        low=low,
        high=high,
        unit=table["unit"],
        setup=setup,
        baseline=table.get("baseline", ""),
        origin=table["from"],
        source=sources[table["from"]],
        at=table["at"],
        reading=reading,
        tolerance_frac=tolerance_frac,
        missing=table.get("missing", ""),
        note=table.get("note", ""),
        **_held(file, where, table),
    )


def _held(file: str, where: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Rules by which a claim is judged, with the reasons."""
    found: dict[str, Any] = {"is_increase": table.get("is_increase", False)}
    _of_kind(file, where, table, "is_increase", bool, "true or false")
    reasons: list[str] = []
    for key, inner in (("judged", "as"), ("assumed", "range")):
        if (given := table.get(key)) is not None:
            _of_kind(file, where, table, key, dict, f'{{ {inner} = …, because = "…" }}')
            _known(file, f"{where}: {key}", given, (inner, "because"))
            _needed(file, f"{where}: {key}", given, (inner, "because"))
            _words(file, f"{where}: {key}", given, ("because",))
            reasons.append(given["because"])
    if "judged" in table:
        _one_of(file, where, "judged", table["judged"]["as"], STATED_VERDICTS)
        found["judged"] = table["judged"]["as"]
    if "assumed" in table:
        found["assumed"] = _range(file, where, table["assumed"]["range"], "the assumed range")
    return {**found, "because": "; ".join(reasons)}


def _sweep(file: str, table: dict[str, Any] | None, claims: Sequence[Claim]) -> Sweep | None:
    """The claim that is looked at across an input, which some set-up of the file states."""
    if table is None:
        return None
    _known(file, "the sweep", table, ("claim", "input", "values", "better"))
    _needed(file, "the sweep", table, ("claim", "input", "values"))
    _one_of(file, "the sweep", "claim", table["claim"], [claim.id for claim in claims])
    _one_of(file, "the sweep", "input", table["input"], sorted(INPUTS))
    _one_of(file, "the sweep", "better", better := table.get("better", "more"), ("more", "less"))
    swept: list[Any] = table["values"]
    if type(swept) is not list or len(swept) < 3:
        raise FactError(f"{file}: the sweep: values is {swept!r}; write a list of three or more.")
    lines: list[dict[str, Any]] = [{"value": value, "basis": "assumed", "note": "swept"} for value in swept]
    values = tuple(parse_fact(f"{file}: the sweep", table["input"], line, {}) for line in lines)
    return Sweep(claim=table["claim"], input=table["input"], values=values, better=better)


def _inputs(file: str, where: str, lines: Mapping[str, Any], sources: Mapping[str, Source]) -> dict[str, Fact]:
    """Facts by name; only known names."""
    _known(file, where, lines, INPUTS.keys())
    return {name: parse_fact(f"{file}: {where}", name, entry, sources) for name, entry in lines.items()}


def _setup(file: str, where: str, name: str, setups: Mapping[str, Setup]) -> Setup:
    """The set-up of that name, which must stand above."""
    if name not in setups:
        raise FactError(f"{file}: {where}: there is no setup {name!r} above; known: {', '.join(setups) or 'none'}.")
    return setups[name]


def _range(file: str, where: str, reported: float | list[float], what: str) -> tuple[float, float]:
    """One number twice, or the two ends of a range."""
    ends = reported if isinstance(reported, list) else [reported, reported]
    if len(ends) != 2 or not all(type(end) in (int, float) for end in ends) or ends[0] > ends[1]:
        raise FactError(f"{file}: {where}: {what} is {reported!r}; write a number, or [low, high].")
    return float(ends[0]), float(ends[1])


def _known(file: str, where: str, table: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse keys that nobody reads."""
    known = sorted(known)
    if extra := sorted(table.keys() - set(known)):
        near = known if len(known) <= MAX_LISTED else sorted({name for key in extra for name in nearest(key, known)})
        words = "known" if near is known else "like it"
        raise FactError(f"{file}: {where}: unknown key {', '.join(extra)}; {words}: {', '.join(near) or 'none'}.")


def _needed(file: str, where: str, table: Mapping[str, Any], needed: tuple[str, ...]) -> None:
    """Refuse a table that leaves out what every such table has."""
    if missing := [key for key in needed if table.get(key) in (None, "")]:
        raise FactError(f"{file}: {where}: needs {', '.join(missing)}.")


def _words(file: str, where: str, table: Mapping[Any, Any], keys: Iterable[Any]) -> None:
    """Refuse numbers, lists and tables where words belong."""
    for key in keys:
        _of_kind(file, where, table, key, str, "words in quotes")


def _of_kind(file: str, where: str, table: Mapping[Any, Any], key: Any, kind: type, written: str) -> None:
    """Refuse a value of another kind, where there is one."""
    if key in table and type(table[key]) is not kind:
        raise FactError(f"{file}: {where}: {key} is {table[key]!r}; write {written}.")


def _one_of(file: str, where: str, key: str, word: str, known: Sequence[str]) -> None:
    """Refuse a word outside its list."""
    if word not in known:
        raise FactError(f"{file}: {where}: {key} {word!r} is none of {', '.join(known)}.")


def _unique(file: str, what: str, names: list[str]) -> None:
    """Refuse a name that stands twice."""
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FactError(f"{file}: there are two of {what} {', '.join(twice)}.")

"""The report of a sweep: every run side by side, the best of them, and what each setting does."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.drawing import Axis, Point, Series, lines, scatter
from orrery.reports.facts import ONLINE, SERVING, accuracy_of, priced
from orrery.reports.frame import Frame, framed, infeasible, prices_of
from orrery.reports.money import money_section, served_bill
from orrery.reports.report import Command, End, Figure, Input, Metric, Number, Report, Section, Sensitivity, Table
from orrery.reports.serving_words import load_said, machines
from orrery.reports.source import Source
from orrery.reports.swings import with_figures
from orrery.reports.words import capital, counted, format_value, listed
from orrery.scenario.sweep import sweep
from orrery.scenario.sweep.rows import Cell, rows_of

Row = Mapping[str, Cell]

FIGURES: tuple[tuple[str, str, str, float], ...] = (
    ("capacity_requests_per_s", "requests/s that it takes", "requests_per_s", 1.0),
    ("usd_per_million_tokens", "$ per million output tokens", "usd", 1.0),
    ("output_throughput", "output tokens/s", "tokens_per_s", 1.0),
    ("mean_ttft_ms", "TTFT, mean", "s", 1e-3),
    ("p99_ttft_ms", "TTFT, P99", "s", 1e-3),
    ("p99_tpot_ms", "TPOT, P99", "s", 1e-3),
    ("slo_attainment", "within the objectives", "frac", 1.0),
)
"""Key, words, unit, and what brings it to that unit."""

DRAWN = ("capacity_requests_per_s", "usd_per_million_tokens", "p99_ttft_ms", "slo_attainment")
MAX_ROWS = 60

LIMITS = (
    "Every run has the same seed: differences between runs are of the settings, not of chance; small ones may still "
    "turn with another seed.",
    "The times of steps come from the same rules as `orrery estimate`; their error moves all runs alike.",
    "What a number format does to answers is not predicted here: measure it on your own questions.",
)


def sweep_report(source: Source, frame: Frame) -> Report:
    """The runs that a file holds, or new ones."""
    plain = source.plain if source.plain is not None else sweep(source.scenario, over=source.over).to_json()
    runs: Sequence[Mapping[str, Any]] = plain["runs"]
    rows, s = rows_of(runs), source.scenario
    done = [i for i, row in enumerate(rows) if row["status"] == "done"]
    varied = list(runs[0]["varied"])
    question = (
        f"Which {listed(varied, 'and which')} is best for {s.model}{f' on {s.device}' if s.device else ''}, "
        f"serving {_load(source, varied)}?",
    )
    if not done:
        first = next((run["infeasible"] for run in runs if "infeasible" in run), None)
        shortfall = first or {
            "what": str(rows[0]["why"]),
            "need": 1.0,
            "have": 0.0,
            "unit": "runs",
            "smallest_change": "",
        }
        return infeasible(source, frame, shortfall, model=s.model or "", question=question)
    best = min(done, key=lambda i: _rank(rows[i], runs[i]))
    name, device = runs[best]["model_id"], runs[best]["deployment"]["device"]
    notes = dict.fromkeys(note for i in done for note in runs[i]["notes"])
    return framed(
        source,
        frame,
        model=name,
        question=question,
        headline=_headline(runs[best], rows[best], varied, len(done)),
        summary=_describe(rows, done),
        money=money_section(served_bill(runs[best], "the load of the best run")),
        numbers=_numbers(rows[best]),
        alternatives=_alternatives(rows, varied, best),
        sensitivity=_sensitivity(rows, done, varied, best),
        where=_where(rows, done, varied),
        assumptions=tuple(notes),
        facts=priced(device),
        accuracy=accuracy_of(ONLINE, SERVING),
        limits=LIMITS,
        commands=(
            Command(about="The runs as pages to explore", line=f"{source.command} --out runs.html"),
            prices_of(source, device),
        ),
    )


def _load(source: Source, varied: Sequence[str]) -> str:
    """The load that all runs have in common."""
    s = source.scenario
    if {"rate", "concurrency", "trace"} & set(varied):
        lengths = (("prompts", s.input_tokens), ("answers", s.output_tokens))
        parts = [f"{name} of {value:,} tokens" for name, value in lengths if value is not None]
        return listed(parts) if parts else "its requests"
    return load_said(s)


def _rank(row: Row, run: Mapping[str, Any]) -> tuple[float, ...]:
    """Rank of a point: objectives met, then dollars a token (of a capacity: for its devices), then throughput."""
    met = run.get("slo_is_met")
    share = row.get("slo_attainment")
    usd = row.get("usd_per_million_tokens")
    missed = 0.0 if met is not False else 1.0 - (float(share) if share is not None else 0.0) + 1e-9
    return missed, float(usd) if usd is not None else 0.0, -float(row["output_throughput"] or 0.0)


def _value(row: Row, key: str, scale: float) -> float | None:
    cell = row.get(key)
    return float(cell) * scale if isinstance(cell, int | float) else None


def _chosen(row: Row, varied: Sequence[str]) -> str:
    return listed([f"{name} = {'default' if row[name] is None else row[name]}" for name in varied])


def _headline(run: Mapping[str, Any], row: Row, varied: Sequence[str], count: int) -> str:
    where = machines(run["num_devices"], run["deployment"]["device"])
    usd = _value(row, "usd_per_million_tokens", 1.0)
    money = f" at {format_value(usd, 'usd')} per million output tokens" if usd is not None else ""
    first = format_value(_value(row, "p99_ttft_ms", 1e-3), "s")
    met = run.get("slo_is_met")
    verdict = "" if met is None else ", and the objectives hold" if met else ", but the objectives are missed"
    top = _value(row, "capacity_requests_per_s", 1.0)
    takes = f" and takes {format_value(top, 'requests_per_s')}" if top is not None else ""
    return (
        f"Of {counted(count, 'run')}, {_chosen(row, varied)} is best: {where}{money}{takes}, with 99 of 100 first "
        f"tokens within {first}{verdict}."
    )


def _describe(rows: Sequence[Row], done: Sequence[int]) -> tuple[str, ...]:
    lost = [row for row in rows if row["status"] != "done"]
    out = ["Best means: the objectives hold, where there are any; then the fewest dollars per token; then throughput."]
    if lost:
        out.append(f"{counted(len(lost), 'run')} came to nothing; the table says why.")
    return tuple(out)


def _numbers(row: Row) -> tuple[Number, ...]:
    found = ((key, words, _value(row, key, scale), unit) for key, words, unit, scale in FIGURES)
    return tuple(Number(name=k, label=capital(w), value=v, unit=u) for k, w, v, u in found if v is not None)


def _alternatives(rows: Sequence[Row], varied: Sequence[str], best: int) -> Section:
    """Every run as a row, and the runs by what a reader and a device get."""
    shown = [f for f in FIGURES if any(row.get(f[0]) is not None for row in rows)]
    numbered = list(enumerate(rows))
    if len(rows) > MAX_ROWS:
        numbered = [pair for pair in numbered if pair[0] == best or pair[0] % (len(rows) // MAX_ROWS + 1) == 0]
    cells = tuple(
        (
            *(str("default" if row[n] is None else row[n]) for n in varied),
            *(format_value(_value(row, key, scale), unit) for key, _, unit, scale in shown),
            str(row["why"] or ""),
        )
        for _, row in numbered
    )
    some = f"; {len(numbered)} of {len(rows)} are shown" if len(numbered) < len(rows) else ""
    table = Table(
        title=f"All runs{some}",
        num_words=len(varied),
        rows=cells,
        columns=(*varied, *(words for _, words, _, _ in shown), "why not"),
        chosen=next(i for i, pair in enumerate(numbered) if pair[0] == best),
    )
    if not any(row["why"] for row in rows):
        table = Table(
            title=table.title,
            num_words=table.num_words,
            columns=table.columns[:-1],
            chosen=table.chosen,
            rows=tuple(row[:-1] for row in table.rows),
        )
    return Section(heading="Alternatives", tables=(table,))


def _sensitivity(rows: Sequence[Row], done: Sequence[int], varied: Sequence[str], best: int) -> Sensitivity | None:
    """Each setting from end to end, the others as in the best run."""
    metrics = tuple(
        Metric(name=k, label=w, unit=u) for k, w, u, scale in FIGURES if _value(rows[best], k, scale) and k in DRAWN
    )
    scales = {k: scale for k, _, _, scale in FIGURES}
    inputs: list[Input] = []
    for name in varied:
        near = [i for i in done if all(rows[i][n] == rows[best][n] for n in varied if n != name)]
        if len(near) > 1:
            ends = [
                End(
                    text=str(rows[i][name]),
                    values={m.name: v for m in metrics if (v := _value(rows[i], m.name, scales[m.name])) is not None},
                )
                for i in (near[0], near[-1])
            ]
            inputs.append(Input(name=name, low=ends[0], high=ends[1]))
    if not inputs or not metrics:
        return None
    base = {m.name: _value(rows[best], m.name, scales[m.name]) or 0.0 for m in metrics}
    summary = (
        "Each bar goes from the first to the last value of one setting, the others as in the best run; all of them "
        "are runs of this sweep.",
    )
    return with_figures(Sensitivity(summary=summary, metrics=metrics, base=base, inputs=tuple(inputs)))


def _where(rows: Sequence[Row], done: Sequence[int], varied: Sequence[str]) -> Section:
    """Lines over the first setting that is a number, one for each value of the others; and the front."""
    numeric = [n for n in varied if all(isinstance(rows[i][n], int | float) for i in done)]
    drawn = [_lines(rows, done, varied, numeric[0], f) for f in FIGURES if f[0] in DRAWN] if numeric else []
    return Section(
        heading="What each setting does", figures=tuple(f for f in (*drawn, _front(rows, done, varied)) if f)
    )


def _lines(
    rows: Sequence[Row], done: Sequence[int], varied: Sequence[str], over: str, figure: tuple[str, str, str, float]
) -> Figure | None:
    key, words, unit, scale = figure
    groups: dict[str, list[tuple[float, float]]] = {}
    for i in done:
        value, at = _value(rows[i], key, scale), _value(rows[i], over, 1.0)
        if value is not None and at is not None:
            groups.setdefault(_chosen(rows[i], [n for n in varied if n != over]), []).append((at, value))
    if not groups or len({at for pairs in groups.values() for at, _ in pairs}) < 2:
        return None
    series = [Series(name, *_columns(sorted(pairs))) for name, pairs in groups.items()]
    title = f"{capital(words)} over {over}"
    low, high = min(v for p in groups.values() for _, v in p), max(v for p in groups.values() for _, v in p)
    return Figure(
        title=title,
        summary=f"From {format_value(low, unit)} to {format_value(high, unit)} over all runs.",
        svg=lines(series, Axis(over), Axis(words, unit), title=title),
    )


def _columns(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in pairs], [y for _, y in pairs]


def _front(rows: Sequence[Row], done: Sequence[int], varied: Sequence[str]) -> Figure | None:
    points = [
        (x, y, _chosen(rows[i], varied))
        for i in done
        if (x := _value(rows[i], "output_tokens_per_s_per_user", 1.0)) is not None
        and (y := _value(rows[i], "output_tokens_per_s_per_device", 1.0)) is not None
    ]
    if len(points) < 2:
        return None
    drawn = [
        Point(x, y, name, is_front=not any(a >= x and b >= y and (a, b) != (x, y) for a, b, _ in points))
        for x, y, name in points
    ]
    title = "Interactivity against throughput per device"
    svg = scatter(
        drawn, Axis("interactivity (tokens/s/user)"), Axis("output throughput per device (tokens/s)"), title=title
    )
    return Figure(title=title, summary="Joined points: no other run is better in both.", svg=svg)

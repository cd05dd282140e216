"""Is a calibrated device right? Real work on this machine, predicted first and then done."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.calibrate.device.file import refuse_table
from orrery.calibrate.measure.quiet import PATIENCE_S
from orrery.calibrate.truth.cases import LONG, QUICK, TINY, Case, Decode, Exchange, Load, Prefill, Product, Suite
from orrery.calibrate.truth.run import described, listening, measure, write_configs
from orrery.catalog.devices import get_device
from orrery.evidence.check import check_table
from orrery.evidence.score import Score, score_errors
from orrery.evidence.tables import read_table, table_text
from orrery.scenario.answer import to_json
from orrery.scenario.ask import estimate
from orrery.scenario.show import Table

SUITES: Mapping[str, Suite] = {"tiny": TINY, "quick": QUICK, "long": LONG}

GROUPS: Mapping[str, tuple[type, str]] = {
    "products": (Product, "matrix products of unseen shapes"),
    "prefill": (Prefill, "one prompt through a transformer"),
    "decode": (Decode, "decode steps of a transformer"),
    "exchange": (Exchange, "all-reduce between two processes"),
    "server": (Load, "a continuous-batching server under a Poisson load"),
}
"""Groups of cases -> the cases, and a description."""

METRICS = ("time_s", "ttft_s", "tpot_s")
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRow:
    """One metric of one case."""

    group: str
    case: str
    metric: str
    predicted_s: float
    measured_s: float
    error_frac: float
    low_80_s: float
    high_80_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Predictions beside measurements, and their errors by group and metric."""

    device: str
    suite: str
    rows: tuple[VerifiedRow, ...]

    def scores(self) -> dict[tuple[str, str], Score]:
        """The errors of each group's metrics; ("server", "ttft_s") among them."""
        keys = dict.fromkeys((row.group, row.metric) for row in self.rows)
        return {key: self._score(*key) for key in keys}

    def _score(self, group: str, metric: str) -> Score:
        mine = [r for r in self.rows if (r.group, r.metric) == (group, metric)]
        inside = [float(r.low_80_s <= r.measured_s <= r.high_80_s) for r in mine]
        return score_errors(np.array([r.error_frac for r in mine]), np.array(inside), np.full(len(mine), np.nan))

    def to_json(self) -> dict[str, Any]:
        """``{"device", "suite", "groups": [...], "rows": [...]}``."""
        groups = [
            {"group": group, "metric": metric, **to_json(score)} for (group, metric), score in self.scores().items()
        ]
        return {"device": self.device, "suite": self.suite, "groups": groups, "rows": to_json(self.rows)}

    def table(self) -> Table:
        """The errors by group, for people."""
        rows = [
            {
                "what": GROUPS[group][1],
                "metric": metric,
                "rows": score.rows,
                "median_error_frac": score.median_abs_error_frac,
                "mean_error_frac": score.mean_abs_error_frac,
                "p90_error_frac": score.p90_abs_error_frac,
                "bias_frac": score.bias_frac,
                "inside_80_frac": score.covered_80_frac,
            }
            for (group, metric), score in self.scores().items()
        ]
        note = "Errors of predictions made before the work was done."
        return Table(kind="groups", title=f"{self.device}, {self.suite} suite", rows=tuple(rows), notes=(note,))


def verify_device(
    device: Path | str,
    *,
    suite: str = "quick",
    groups: Sequence[str] = (),
    table: Path | str = "",
    replace_file: bool = False,
    patience_s: float = PATIENCE_S,
    on_progress: Progress = lambda done, total: None,
) -> Verified:
    """Predict the cases of a suite on a calibrated ``device`` file, then run them here with NumPy.

    ``groups`` names some of ``GROUPS`` (all, if empty); ``table`` a CSV file for the measured rows.
    """
    suite_cases = _suite(suite)
    if table:
        refuse_table(Path(table), is_replaced=replace_file)
    chosen = _groups(groups)
    if "numpy" not in {engine for _, _, engine in get_device(str(device)).calibrations}:
        raise ScenarioError(f"{device} was not measured with NumPy; run orrery calibrate device --backend numpy.")
    with tempfile.TemporaryDirectory() as folder:
        configs = Path(folder)
        write_configs({s.network.name: s.network for s in (*suite_cases.steps, *suite_cases.servers)}.values(), configs)
        cases = [case for case in _cases(suite_cases, str(device), configs) if _group(case) in chosen]
        predicted = _predictions(cases, str(device), configs)
        found: list[dict[str, Any]] = []
        brief = [case for case in cases if not isinstance(case, Load)]
        loads = [case for case in cases if isinstance(case, Load)]
        quiet = listening(patience_s)
        total = len(brief) * suite_cases.rounds + len(loads) * suite_cases.load_rounds
        for part, rounds, before in (
            (brief, suite_cases.rounds, 0),
            (loads, suite_cases.load_rounds, len(brief) * suite_cases.rounds),
        ):
            if part:
                found += measure(
                    part,
                    device=str(device),
                    configs=configs,
                    rounds=rounds,
                    quiet=quiet,
                    on_progress=lambda done, _, before=before: on_progress(before + done, total),
                )
        if table:
            write_atomically(Path(table), table_text(found))
        return Verified(
            device=str(device),
            suite=suite,
            rows=tuple(_rows(cases, [*brief, *loads], found, predicted)),
        )


def _suite(name: str) -> Suite:
    if name not in SUITES:
        raise ScenarioError(f"--suite {name!r}: write {' or '.join(SUITES)}.")
    return SUITES[name]


def _groups(suite_cases: Sequence[str]) -> tuple[str, ...]:
    if unknown := [group for group in suite_cases if group not in GROUPS]:
        raise ScenarioError(f"--only {', '.join(unknown)}: write some of {', '.join(GROUPS)}.")
    return tuple(suite_cases) or tuple(GROUPS)


def _group(case: Case) -> str:
    return next(group for group, (kind, _) in GROUPS.items() if isinstance(case, kind))


def _cases(suite: Suite, device: str, configs: Path) -> list[Case]:
    """All cases, a load for each share of the capacity that the prediction states."""
    loads: list[Case] = []
    for server in suite.servers:
        full = estimate(
            model=str(configs / f"{server.network.name}.json"),
            device=device,
            engine="numpy",
            input_tokens=server.input_tokens,
            output_tokens=server.output_tokens,
            concurrency=server.limits.max_num_seqs,
        )
        capacity = full.to_json()["requests_per_s"]
        loads += [server.load(share * capacity) for share in suite.loads_frac]
    return [*suite.products, *suite.steps, *suite.exchanges, *loads]


Predicted = dict[str, tuple[float, float, float]]
"""By metric: the prediction and its 80 % interval."""


def _predictions(cases: Sequence[Case], device: str, configs: Path) -> list[Predicted]:
    """Predictions for a table of these runs; its measured cells hold ones, which no prediction reads."""
    rows = [{**described(case, configs), "device": device, **dict.fromkeys(_columns(case), 1.0)} for case in cases]
    path = configs / "cases.csv"
    path.write_text(table_text(rows))
    answers = check_table(read_table(path)).answers
    if answers.declined:
        row, reason = next(iter(answers.declined.items()))
        raise ScenarioError(f"{rows[row]}: cannot be predicted: {reason}.")
    return [
        {
            metric: _seconds(
                case,
                float(answers.predicted[column][i]),
                float(answers.intervals[column]["low_80"][i]),
                float(answers.intervals[column]["high_80"][i]),
            )
            for metric, column in zip(_metrics(case), _columns(case), strict=True)
        }
        for i, case in enumerate(cases)
    ]


def _columns(case: Case) -> tuple[str, ...]:
    """The columns of a table that state a case's metrics: of decode steps, their rate, which has no prompts in."""
    return ("decode_tokens_per_s",) if isinstance(case, Decode) else _metrics(case)


def _seconds(case: Case, value: float, low: float, high: float) -> tuple[float, float, float]:
    """A prediction and its interval in seconds: a rate of decoding becomes a step that gives all of them a token."""
    if not isinstance(case, Decode):
        return value, low, high
    return case.batch_size / value, case.batch_size / high, case.batch_size / low


def _metrics(case: Case) -> tuple[str, ...]:
    match case:
        case Product() | Exchange():
            return ("time_s",)
        case Prefill():
            return ("ttft_s",)
        case Decode():
            return ("tpot_s",)
        case Load():
            return ("ttft_s", "tpot_s")


def _rows(
    cases: Sequence[Case], order: Sequence[Case], found: Sequence[Mapping[str, Any]], predicted: Sequence[Predicted]
) -> list[VerifiedRow]:
    """One row a case and metric; a load that did not come to an end has none."""
    measured = {id(case): row for case, row in zip(order, found, strict=True)}
    rows: list[VerifiedRow] = []
    for case, text in zip(cases, predicted, strict=True):
        for metric, (value, low, high) in text.items():
            if (truth := measured[id(case)].get(metric)) is not None:
                rows.append(
                    VerifiedRow(
                        group=_group(case),
                        case=_words(case),
                        metric=metric,
                        predicted_s=value,
                        measured_s=float(truth),
                        error_frac=value / float(truth) - 1.0,
                        low_80_s=low,
                        high_80_s=high,
                    )
                )
    return rows


def _words(case: Case) -> str:
    match case:
        case Product(m=m, n=n, k=k):
            return f"{m} x {n} x {k}"
        case Prefill(network=network, prompt_tokens=tokens):
            return f"{network.name}, {tokens} tokens"
        case Decode(network=network, batch_size=batch, context_tokens=context):
            return f"{network.name}, {batch} x 1 after {context}"
        case Exchange(message_bytes=size):
            return f"{size} bytes"
        case Load(server=server, request_rate_per_s=rate):
            return f"{server.network.name}, {rate:.1f}/s"

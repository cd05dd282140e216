"""Fit the host's seconds of runtimes of speech: ``python tools/fit/speech.py``.

Five constants serve all devices, models and runs: the host's seconds of one operator in an eager framework, in a
runtime of its own, and in one that makes a graph of a step before it, and what an eager framework's loop and the
other two do between two steps.
Rows are the published ones of speech (src/orrery/evidence/workloads.csv); every campaign weighs the same and is left
out once, and the errors there are the interval and the score. Runtimes that serve language models too keep the
constants of their engines.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from accuracy_tables import write_tables
from diffusion import cell
from numpy.typing import NDArray
from scipy.optimize import minimize

from orrery.base.files import write_atomically
from orrery.catalog.speech_runtimes import FITTED, get_runtime
from orrery.evidence.accuracy import read_tables
from orrery.evidence.row import Row
from orrery.evidence.tables import read_table
from orrery.evidence.workload_rows import PUBLISHED, refusal, settings_of
from orrery.execution.speech import Stage, transcribe
from orrery.execution.speech_runtime import SpeechRuntime
from orrery.scenario.model_kind import ModelKind, kind_of
from orrery.scenario.schema import read_scenario
from orrery.scenario.speech import SpeechAnswer, speech

Floats = NDArray[np.float64]
START = {
    "eager_operator_s": 2e-5,
    "eager_step_s": 5e-3,
    "native_operator_s": 8e-6,
    "native_step_s": 1e-3,
    "graph_node_s": 2e-6,
}
LOSS_SCALE, PULL = 0.1, 0.002
KEY = "speech, a campaign left out"
TITLES = {
    "latency_s": "whole recordings",
    "encoder_s": "encoder of one window",
    "decoder_step_s": "one decoder step",
}
"""By metric, what the page calls it."""

METRICS = tuple(TITLES)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "speech.md"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One measurement, and what its prediction is made of."""

    row: Row
    metric: str
    measured_s: float
    answer: SpeechAnswer
    stages: Sequence[Stage]  # on the device alone
    step_s: float  # the same

    @property
    def campaign(self) -> str:
        """Who measured it, and when."""
        return self.row.word("campaign")

    def predicted_s(self, constants: Mapping[str, float]) -> float:
        """The measurement's prediction with these constants."""
        found = self.answer
        runtime = get_runtime(found.runtime.name, found.device, constants)
        encoder = max(self.stages[0].time_s, runtime.encoder_host_s(found.model.encoder_layers))
        first = encoder + runtime.encoder_graph_s(found.model.encoder_layers) + self.stages[1].time_s
        windows = found.windows
        host = runtime.decoder_host_s(found.model.decoder_layers, windows.count, windows.beams)
        graph = runtime.decoder_graph_s(found.model.decoder_layers, windows.count, windows.beams)
        step = max(self.step_s + found.model.decoder_layers * runtime.layer_s, host) + graph
        if self.metric == "encoder_s":
            return first
        if self.metric == "decoder_step_s":
            return step
        each = first + found.transcribed.steps * (step + runtime.step_s)
        return found.preparation_s + found.num_rounds * each


def read() -> list[Run]:
    """The shipped rows of speech."""
    table = read_table(PUBLISHED)
    out: list[Run] = []
    for i in range(len(table)):
        row = Row({column: cells[i] for column, cells in table.columns.items()})
        if kind_of(row.word("model")) is ModelKind.SPEECH and not refusal(row):
            out += _runs(row)
    return out


def _runs(row: Row) -> list[Run]:
    answer = speech(read_scenario(settings_of(row)))
    assert isinstance(answer, SpeechAnswer), row
    bare: SpeechRuntime = replace(answer.runtime, operator_s=0.0, node_s=0.0, step_s=0.0, sequence_s=0.0, layer_s=0.0)
    alone = transcribe(answer.model, answer.device, answer.windows, bare)
    return [
        Run(
            row=row,
            metric=metric,
            measured_s=float(row.word(metric)),
            answer=answer,
            stages=alone.stages,
            step_s=alone.step_s,
        )
        for metric in METRICS
        if row.word(metric)
    ]


def ratios(runs: Sequence[Run], constants: Mapping[str, float]) -> Floats:
    """Measured over predicted."""
    return np.array([run.measured_s / run.predicted_s(constants) for run in runs])


def fit(runs: Sequence[Run]) -> dict[str, float]:
    """The constants that serve these runs best; a campaign weighs one."""
    first = np.log(np.array(list(START.values())))
    names = [run.campaign for run in runs]
    weight = np.array([1.0 / names.count(name) for name in names])

    def loss(x: Floats) -> float:
        off = np.log(ratios(runs, _named(x)))
        robust = np.sqrt(off**2 + LOSS_SCALE**2)
        return float((weight * robust).sum() / weight.sum() + PULL * ((x - first) ** 2).sum())

    return _named(minimize(loss, first, method="Nelder-Mead", options={"maxiter": 800, "xatol": 1e-3}).x)


def _named(x: Floats) -> dict[str, float]:
    return {name: float(f"{exp(v):.4g}") for name, v in zip(START, x, strict=True)}


def errors(runs: Sequence[Run], found: Floats) -> dict[str, dict[str, dict[str, Any]]]:
    """Errors of each metric over all runs, by runtime and by campaign."""
    out: dict[str, dict[str, dict[str, Any]]] = {}
    for metric in METRICS:
        mine = np.array([run.metric == metric for run in runs])
        out[metric] = {"all": {"rows": int(mine.sum()), **cell(found[mine])}}
        for label, words in (
            ("engine", np.array([run.answer.runtime.name for run in runs])),
            ("campaign", np.array([run.campaign for run in runs])),
        ):
            for word in sorted(set(words[mine].tolist())):
                rows = mine & (words == word)
                out[metric][f"{label}: {word}"] = {"rows": int(rows.sum()), **cell(found[rows])}
    return out


def write_page(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
    """The page's table: all rows of a metric, and whole recordings by runtime and by campaign."""
    lines = ["| what | group | rows | median | mean | 90th percentile | bias |", "|---|---|---|---|---|---|---|"]
    for metric, title in TITLES.items():
        for group, e in found[metric].items():
            if group == "all" or metric == "latency_s":
                cells = " | ".join(f"{100 * e[k]:.0f} %" for k in ("median", "mean", "p90"))
                lines.append(f"| {title} | {group} | {e['rows']} | {cells} | {100 * e['bias']:+.0f} % |")
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(lines[0])[0], text.partition(lines[0])[2].partition("\n\n")[2]
    write_atomically(PAGE, before + "\n".join(lines) + "\n\n" + after)


def main() -> None:
    """Fit, judge with each campaign left out, and write constants, interval and errors."""
    runs = read()
    constants, found = fit(runs), np.empty(len(runs))
    campaigns = sorted({run.campaign for run in runs})
    for campaign in campaigns:
        out = np.array([run.campaign == campaign for run in runs])
        left = fit([run for run in runs if run.campaign != campaign])
        found[out] = ratios([run for run in runs if run.campaign == campaign], left)
        print(f"{campaign:28s} {left}  {np.exp(np.median(np.log(found[out]))):.2f}")
    print("fitted", constants, "in sample", cell(ratios(runs, constants)))
    whole = np.array([log(r) for r, run in zip(found, runs, strict=True) if run.metric == "latency_s"])
    quantiles = {name: round(exp(np.quantile(whole, q)), 4) for name, q in (("low_80", 0.1), ("high_80", 0.9))}
    quantiles |= {name: round(exp(np.quantile(whole, q)), 4) for name, q in (("low_95", 0.025), ("high_95", 0.975))}
    because = f"{whole.size} published recordings, {len(campaigns)} campaigns, each with constants fitted without it"
    text = tomli_w.dumps({"constants": constants, "spread": {**quantiles, "because": because}})
    write_atomically(FITTED, f"# made by: python tools/fit/speech.py\n{text}")
    write_tables({**read_tables(), KEY: errors(runs, found)})
    write_page(errors(runs, found))
    for metric, groups in errors(runs, found).items():
        for group, e in groups.items():
            print(f"{metric:15s} {group:40s} {e}")


if __name__ == "__main__":
    main()

"""Score the measured runs that no fit has ever read, and write their part of the scorecard.

    python tools/scorecard_unseen.py

reads the tables of every batch (docs/data/unseen-*.csv), and writes its part of docs/scorecard.md and of
src/orrery/evidence/accuracy.toml. The first score of a batch, made before anything was changed on account of its runs,
stays beside the present one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fit.accuracy_tables import write_tables
from orrery.base.files import write_atomically
from orrery.evidence.accuracy import read_tables
from orrery.evidence.campaign import campaign_of
from orrery.evidence.check import check_table
from orrery.evidence.checked import Checked
from orrery.evidence.row import Row
from orrery.evidence.score import score_errors
from orrery.evidence.tables import read_table

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data"
SCORECARD = ROOT / "docs" / "scorecard.md"

DECLINED = "declined"

COLUMNS = (
    "metric",
    "mode, framework or campaign",
    "rows",
    "first: median / mean / p90",
    "bias",
    "80 %",
    "**now**",
    "bias",
    "80 %",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Runs that were collected together, and the heading and words of their section."""

    key: str
    tables: tuple[Path, ...]
    heading: str
    text: str


BATCHES = (
    Batch(
        key="unseen",
        tables=(DATA / "unseen-serving.csv", DATA / "unseen-training.csv"),
        heading="## Measurements collected afterwards",
        text="""
Published runs that were collected after every constant and interval had been fitted, from sources that no fit reads:
[data/unseen-serving.csv](data/unseen-serving.csv) and [data/unseen-training.csv](data/unseen-training.csv), each row
with its source and conditions. No constant is fitted to them. Their first score, before anything was changed on their
account, stays in the table; what was mended since are mechanisms and facts, which the changelog names. A group is a
campaign: one source's runs of one engine, of one era, on one generation of devices. Whole campaigns have joined the
fits since, with their rows ([data/later-serving.csv](data/later-serving.csv): 38 runs of SGLang's cookbook; llama.cpp
on GB10; MiniMax-M2.7 on MI300X; 40 steps of vLLM 0.20.1 on B300, timed by the engine
itself), where no other run said anything of an engine's recent releases. They are scored as every fitted campaign is,
by constants that never saw them; they are in the first score of groups over all sources and not in the present one.
`python tools/scorecard_unseen.py` finds these numbers.
""",
    ),
    Batch(
        key="unseen, second batch",
        tables=(DATA / "unseen-serving-second.csv",),
        heading="## A second batch, collected in November 2026",
        text="""
Serving runs that their authors published in issues and pull requests of some thirty projects, collected after the
batch above had been worked on: [data/unseen-serving-second.csv](data/unseen-serving-second.csv). Their first score is
a blind one: every row was written down before any was predicted, none was left out for its error, and what a source
does not say (often the release, sometimes the memory share) is blank, as it would be for a user. Rows of one source
that were no first prompts have no time to first token, since their prompts share a prefix. Of it,
too, campaigns have joined the fits since: gpt-oss-120b on MI355X; llama.cpp on RTX 4090, M1 Ultra and M4.
""",
    ),
    Batch(
        key="unseen, third batch",
        tables=(DATA / "unseen-serving-third.csv",),
        heading="## A third batch: models of 2026 in SGLang's cookbook",
        text="""
Runs of SGLang 0.5.13 to 0.5.16 that its cookbook holds and nothing here had read: Qwen3.6, GLM-5.2, MiniMax-M3,
Command A+, Laguna, LFM2.5, on H100, H200, B200, B300, GB300 and MI355X
([data/unseen-serving-third.csv](data/unseen-serving-third.csv)). Their first score is blind. Rows with
`acceptance_length` come from servers that hold it or print it; of other drafts published acceptances are assumed.
Three rows of Command A+ on B300 are left out because of a bound: half of their prompts would have been computed
faster than the device's peak allows (repeated runs send the same prompts, which caches hold). What was mended since
are mechanisms and facts, found on rows of this batch, of which *now* is therefore no independent score: two checkpoints
whose names say NVFP4 keep 16-bit activations; Marlin multiplies at one warp's rate; prompts of sparse latent attention
compute whole tiles of heads; SGLang's cache behind an indexer is FP8 on Blackwell.
""",
    ),
    Batch(
        key="unseen, fourth batch",
        tables=(DATA / "unseen-serving-fourth.csv",),
        heading="## A fourth batch: vLLM and ATOM in 2026",
        text="""
Serving runs of vLLM (0.14 and later), of AMD's ATOM and of TensorRT-LLM that their authors published in 2026 in issues,
pull requests and on pages of some twenty projects, from B200, B300, H100, H200, MI350X and MI355X:
[data/unseen-serving-fourth.csv](data/unseen-serving-fourth.csv). Every row was written down before any was predicted,
and ATOM's 31 runs were predicted as vLLM's, since orrery did not know that engine then. They showed how it schedules
(its documentation says the same: prompts go first, in steps of their own), and it is an engine since; no constant is
fitted to them. Six runs of Kimi-K3 are left out, whose drafter no table describes, and three of a page that
states no flags of its servers.
""",
    ),
    Batch(
        key="unseen, fifth batch",
        tables=(DATA / "unseen-serving-fifth.csv",),
        heading="## A fifth batch: other devices, default flags",
        text="""
Serving runs from nineteen sources of 2025 and 2026, chosen for what the batches above hold little of: TPU v6e and v7x,
Arc Pro B60, Strix Halo, DGX Spark (one and four), RTX 5090 and PRO 6000, Jetson Thor; TensorRT-LLM 0.21 to 1.2;
servers started with their default flags and given a thousand requests at once; one request at a time on B200:
[data/unseen-serving-fifth.csv](data/unseen-serving-fifth.csv). Every row was written down before any was predicted,
and none was left out for its error. sglang-jax is predicted as SGLang and Intel's fork as vLLM, since their users would
write that. Power on DGX Spark is what the driver says of the GPU alone, where orrery answers for the whole package.
What was mended since, on rows of this batch: prompts behind an indexer pay for the whole selection in vLLM; requests
sent at once are served in their order; rows that say ShareGPT have a `dataset`, whose lengths are unequal.
""",
    ),
    Batch(
        key="unseen training, second batch",
        tables=(DATA / "unseen-training-second.csv",),
        heading="## Training runs of 2026",
        text="""
Training runs that their authors published in issues, pull requests and repositories of some fifteen projects, most of
them in 2026 ([data/unseen-training-second.csv](data/unseen-training-second.csv)): Megatron-LM and Megatron Bridge on
H100, B200, B300, GB200 and GB300, MaxText on B200, MI355X and Trillium, PyTorch's FSDP, TRL at a million tokens,
adapters. Their first score is blind: every row was written down before any was predicted. Its rows then showed what
could not be said of a training job: which launches CUDA graphs replay, whether the exchange of tokens runs beside
another micro-batch, which attention kernel runs, how much of an expert's capacity is empty, in which chunks the loss
is computed, which activations go to the host. Their sources or defaults state these (chunks of TRL's loss are taken as
256 tokens), so the rows now have columns for them; a run with a date and no release is taken to have used the newest
of its day; and constants of links rest on models without experts alone. *Now* is therefore no independent score. Two
runs whose source cannot be cited are left out. prime-rl stood under *fsdp* at first; *pytorch* includes nanochat,
which the catalogue does not know.
""",
    ),
    Batch(
        key="one H100",
        tables=(DATA / "h100-serving.csv", DATA / "h100-training.csv", DATA / "h100-kernels.csv"),
        heading="## One H100, measured in November 2026",
        text="""
Measured for this page on one H100 SXM (80 GB, 700 W, driver 580.159.04, PyTorch 2.11.0, transformers 5.17.0, Triton
3.6, 16 cores of a Xeon in a virtual machine): batches that transformers generates, with random weights
([data/h100-serving.csv](data/h100-serving.csv)), training steps of one device
([data/h100-training.csv](data/h100-training.csv)), and kernels replayed in CUDA graphs over operands that no cache
holds ([data/h100-kernels.csv](data/h100-kernels.csv); `power_w` from the device's energy counter over half a second).
The first score is blind. What it showed was mended: a library that runs its operators one by one from Python was
modelled as an engine's few kernels, and gradients that are dropped after each update stood beside the logits. The
time of a launch, and what a step costs beside its layers, are fitted to these sixteen serving rows, and operators were
counted with them in view: of those rows *now* is no independent score.
""",
    ),
)

Entry = Mapping[str, float]
"""Rows, median, mean, p90, bias and the share of measurements in the 80 % interval."""


def entries(tables: tuple[Path, ...]) -> dict[str, Any]:
    """What became of every row of the tables, by metric and group, and how many were declined for which reason."""
    found: dict[str, Any] = {}
    declined: dict[str, int] = {}
    for path in tables:
        checked = check_table(read_table(path))
        rows = [Row({c: v[n] for c, v in checked.table.columns.items()}) for n in range(len(checked.table))]
        groups = [np.array([group(row) for row in rows]) for group in (_kind, campaign_of)]
        for reason in checked.answers.declined.values():
            declined[reason] = declined.get(reason, 0) + 1
        for metric in checked.measured:
            if (known := checked.scored(metric)).any():
                found.setdefault(metric, {}).update(_scores(checked, metric, known, groups))
    return found | {DECLINED: [f"{why} ({number})" for why, number in declined.items()]}


def _kind(row: Row) -> str:
    """The mode of a serving run, the framework of a training run, the operator and format of a kernel."""
    return row.word("mode") or row.word("framework") or f"{row.word('op')} {row.word('format')}"


def _scores(
    checked: Checked, metric: str, known: np.ndarray, groups: list[np.ndarray]
) -> Iterator[tuple[str, dict[str, Any]]]:
    measured = checked.measured[metric]
    for words in groups:
        for group in np.unique(words[known]):
            mine = known & (words == group)
            inside = [checked.answers.inside(metric, measured, share)[mine] for share in (80, 95)]
            score = score_errors(checked.error(metric, mine), *inside)
            values = {
                "median": score.median_abs_error_frac,
                "mean": score.mean_abs_error_frac,
                "p90": score.p90_abs_error_frac,
                "bias": score.bias_frac,
                "covered_80": score.covered_80_frac,
            }
            kept = {name: round(value, 4) for name, value in values.items() if value is not None}
            yield str(group), {"rows": score.rows} | kept


def lines(batch: Batch, now: Mapping[str, Any], first: Mapping[str, Any]) -> list[str]:
    """The section's tables: every metric and campaign, with the first score beside the present one."""
    out = [
        batch.heading + "\n",
        batch.text.strip() + "\n",
        f"| {' | '.join(COLUMNS)} |",
        "|" + "---|" * len(COLUMNS),
    ]
    for metric, groups in now.items():
        if metric == DECLINED:
            continue
        for group, entry in groups.items():
            before = first.get(metric, {}).get(group)
            cells = _cells(before) if before else ["", "", ""]
            errors, bias, covered = _cells(entry)
            row = [f"`{metric}`", group, f"{entry['rows']}", *cells, f"**{errors}**", bias, covered]
            out.append(f"| {' | '.join(row)} |")
    for when, found in (("at first", first), ("now", now)):
        out.append(f"\nRows that were not answered {when}: {'; '.join(found.get(DECLINED, ())) or 'none'}.")
    return out


def _cells(entry: Entry) -> list[str]:
    errors = " / ".join(f"{100 * entry[k]:.1f}" for k in ("median", "mean", "p90"))
    covered = f"{100 * entry['covered_80']:.0f}" if "covered_80" in entry else ""
    return [errors, f"{100 * entry['bias']:+.1f}", covered]


def _first(key: str) -> str:
    return f"{key}, first score"


def section(batch: Batch, retained: Mapping[str, Any]) -> str:
    """The section of the page, from the numbers in the accuracy file."""
    return "\n".join([*lines(batch, retained[batch.key], retained.get(_first(batch.key), {})), "", ""])


def main() -> None:
    """Score, and write both places."""
    retained = dict(read_tables())
    page = SCORECARD.read_text(encoding="utf-8")
    for batch in BATCHES:
        retained[batch.key] = entries(batch.tables)
        retained.setdefault(_first(batch.key), retained[batch.key])
        place = rf"(?ms)^{re.escape(batch.heading)}\n.*?(?=^## )"
        if not re.search(place, page):
            page = page.replace("## Training runs\n", f"{batch.heading}\n\n## Training runs\n", 1)
        page = re.sub(place, partial(_text, section(batch, retained)), page)
    write_tables(retained)
    write_atomically(SCORECARD, page)
    print("wrote docs/scorecard.md and src/orrery/evidence/accuracy.toml")


def _text(text: str, _: object) -> str:
    return text


if __name__ == "__main__":
    main()

"""Learn what new papers are about from papers that people have read, and measure how well that works.

    python tools/understanding.py PAGES LABELS [--no-write]

PAGES is a folder of pages saved as text; LABELS a JSON list of {title, layer, claims: [{value, unit}]} for the papers
on them. Weights go to ``src/orrery/evidence/understanding/weights.npz``, the measured precision and recall into
``docs/new-papers.md``. Every figure is of papers that were left out when the weights were learned.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import LinearSVC

from orrery.base.files import write_atomically
from orrery.base.sources import read_toml
from orrery.base.units import percent
from orrery.evidence.feed.page import read_page
from orrery.evidence.feed.text import title_key
from orrery.evidence.paper_file import get_paper, paper_keys
from orrery.evidence.understanding.claims import MIN_CONFIDENCE_FRAC, candidates
from orrery.evidence.understanding.layer import counted, softmax, vector_of
from orrery.evidence.understanding.techniques import compared, described, likeness
from orrery.evidence.understanding.weights import FILE
from understanding_labels import Paper, labelled, matches

PAGE = Path(__file__).parents[1] / "docs" / "new-papers.md"
START, END = "<!-- understanding:start -->", "<!-- understanding:end -->"
FOLDS, TIMES = 4, 5
MIN_PAPERS = 2
"""A word that fewer papers have is not learned."""

SVM_C, CLAIM_C = 0.2, 0.3

DESCRIBED = read_toml(Path(__file__).with_name("understanding_layers.toml"))["layers"]
DESCRIPTION_TIMES = 5
"""How often a layer's description counts as a paper of it."""
SHARPNESSES = np.geomspace(1.0, 12.0, 40)


def main() -> None:
    """Learn, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("labels", type=Path)
    parser.add_argument("--no-write", action="store_true", help="Measure only.")
    requested = parser.parse_args()
    papers = labelled(_read(requested.pages), json.loads(requested.labels.read_text(encoding="utf-8")))
    layers, sharpness, layer_lines = measure_layers(papers)
    curve, technique_lines = measure_techniques(papers)
    report = "\n".join([*layer_lines, "", *measure_claims(papers), "", *technique_lines])
    print(report)
    if not requested.no_write:
        write_weights(papers, layers, sharpness, curve)
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split(START, 1)
        write_atomically(PAGE, f"{before}{START}\n{report}\n{END}{rest.split(END, 1)[1]}")


def _read(folder: Path) -> dict[str, tuple[str, str]]:
    """Title and abstract of every paper on the pages."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.glob("*.txt")):
        for entry in read_page(path.read_text(encoding="utf-8"), path.name, date.today()).entries:
            found[entry.id] = (entry.title, entry.abstract)
    return found


def _vocabulary(counts: Sequence[Counter[str]]) -> tuple[dict[str, int], np.ndarray]:
    """Words that enough papers have, and how rare they are."""
    num_with = Counter(word for count in counts for word in count)
    words = sorted(word for word, n in num_with.items() if n >= MIN_PAPERS)
    rarities = np.array([np.log((1 + len(counts)) / (1 + num_with[w])) + 1.0 for w in words], dtype=np.float32)
    return {word: i for i, word in enumerate(words)}, rarities


def _fit_layers(counts: Sequence[Counter[str]], layers: Sequence[str]) -> tuple[Any, dict[str, int], np.ndarray]:
    """From papers, and from what each layer is about in a few words."""
    counts = [*counts, *[counted("", text) for text in DESCRIBED.values()] * DESCRIPTION_TIMES]
    layers = [*layers, *list(DESCRIBED) * DESCRIPTION_TIMES]
    places, rarities = _vocabulary(counts)
    rows = np.stack([vector_of(count, places, rarities) for count in counts])
    return LinearSVC(C=SVM_C, class_weight="balanced").fit(rows, layers), places, rarities


def measure_layers(papers: Sequence[Paper]) -> tuple[list[str], float, list[str]]:
    """Layers, the sharpness that makes confidence honest, and the table of the page."""
    counts, truth = [counted(p.title, p.abstract) for p in papers], np.array([p.layer for p in papers])
    layers = sorted(set(truth))
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for time in range(TIMES):
        folds = StratifiedKFold(FOLDS, shuffle=True, random_state=time)
        for fit, test in folds.split(counts, truth):
            model, places, rarities = _fit_layers([counts[i] for i in fit], truth[fit])
            rows = np.stack([vector_of(counts[i], places, rarities) for i in test])
            held.append((test, model.decision_function(rows)))
    at = np.concatenate([test for test, _ in held])
    values = np.concatenate([v for _, v in held])
    index = np.array([layers.index(truth[i]) for i in at])
    losses = [-np.mean(np.log(softmax(values, s)[np.arange(len(at)), index])) for s in SHARPNESSES]
    sharpness = float(SHARPNESSES[int(np.argmin(losses))])
    return layers, sharpness, _layer_lines(layers, index, values, sharpness, Counter(truth.tolist()))


def _layer_lines(
    layers: Sequence[str], index: np.ndarray, values: np.ndarray, sharpness: float, num: Counter[str]
) -> list[str]:
    chances = softmax(values, sharpness)
    text, sure = chances.argmax(axis=1), chances.max(axis=1)
    lines = [
        f"**Layers**, of {sum(num.values())} papers ({FOLDS} folds, {TIMES} times over): the layer is right for "
        f"{percent(np.mean(text == index))}; among the three likeliest for "
        f"{percent(np.mean([t in np.argsort(-c)[:3] for t, c in zip(index, chances, strict=True)]))}.",
        "",
        "| layer | papers | precision | recall | F1 |",
        "|---|---|---|---|---|",
    ]
    table = []
    for i, layer in enumerate(layers):
        hit, named, real = np.sum((text == i) & (index == i)), np.sum(text == i), np.sum(index == i)
        precision, recall = hit / max(1, named), hit / real
        table.append((precision, recall, 2 * precision * recall / max(1e-9, precision + recall), num[layer]))
        lines.append(f"| {layer} | {num[layer]} | {precision:.2f} | {recall:.2f} | {table[-1][2]:.2f} |")
    scores, weights = np.array(table)[:, :3], np.array(table)[:, 3]
    for name, mean in (("macro", scores.mean(axis=0)), ("weighted", weights @ scores / weights.sum())):
        lines.append(f"| **{name}** | {sum(num.values())} | " + " | ".join(f"**{x:.2f}**" for x in mean) + " |")
    lines += ["", "| confidence said | share of papers | right |", "|---|---|---|"]
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        inside = (sure >= low) & (sure < high)
        right = percent(np.mean(text[inside] == index[inside])) if inside.any() else "-"
        lines.append(f"| {low:.1f} to {min(high, 1.0):.1f} | {percent(inside.mean())} | {right} |")
    return lines


def _examples(papers: Sequence[Paper]) -> list[list[tuple[Any, bool]]]:
    """Numbers of each paper, and whether its readers list them as claims."""
    return [[(c, any(matches(c.claim, t) for t in p.claims)) for c in candidates(p.abstract, {})] for p in papers]


def _fit_claims(examples: Sequence[Sequence[tuple[Any, bool]]]) -> dict[str, float]:
    """A weight a feature that stands with two numbers or more."""
    flat = [example for paper in examples for example in paper]
    num_with = Counter(f for c, _ in flat for f in c.features)
    names = sorted(f for f, n in num_with.items() if n >= MIN_PAPERS)
    place = {name: i for i, name in enumerate(names)}
    rows = np.zeros((len(flat), len(names)))
    for row, (candidate, _) in enumerate(flat):
        rows[row, [place[f] for f in candidate.features if f in place]] = 1.0
    model = LogisticRegression(C=CLAIM_C, max_iter=5000, fit_intercept=False).fit(rows, [is_one for _, is_one in flat])
    return dict(zip(names, model.coef_[0].tolist(), strict=True))


def measure_claims(papers: Sequence[Paper]) -> list[str]:
    """Precision and recall of what is read as a claim, with weights that have not seen the paper."""
    examples = _examples(papers)
    named = hit = found = 0
    listed = sum(len(p.claims) for p in papers)
    raw_hit = raw_found = raw_named = 0
    bins: dict[int, list[bool]] = {}
    for fit, test in KFold(8, shuffle=True, random_state=0).split(papers):
        weights = _fit_claims([examples[i] for i in fit])
        for i in test:
            every = [c.claim for c in candidates(papers[i].abstract, weights)]
            retained = [c for c in every if c.confidence_frac >= MIN_CONFIDENCE_FRAC]
            truth = papers[i].claims
            named, raw_named = named + len(retained), raw_named + len(every)
            hit += sum(any(matches(c, t) for t in truth) for c in retained)
            raw_hit += sum(any(matches(c, t) for t in truth) for c in every)
            found += sum(any(matches(c, t) for c in retained) for t in truth)
            raw_found += sum(any(matches(c, t) for c in every) for t in truth)
            for c in every:
                bins.setdefault(min(4, int(c.confidence_frac * 5)), []).append(any(matches(c, t) for t in truth))
    total = sum(p.num_claims for p in papers)
    lines = [
        f"**Claims**: readers list {total} claims of these papers, {listed} of them as a number with a unit that the "
        "rules know. A claim counts as found where value and unit agree.",
        "",
        "| | read as claims | precision | recall | recall of all |",
        "|---|---|---|---|---|",
        f"| every number with a unit | {raw_named} | {raw_hit / raw_named:.2f} | {raw_found / listed:.2f} | "
        f"{raw_found / total:.2f} |",
        f"| **confidence {MIN_CONFIDENCE_FRAC:g} or more** | {named} | **{hit / named:.2f}** | "
        f"**{found / listed:.2f}** | {found / total:.2f} |",
        "",
        "| confidence said | numbers | claims |",
        "|---|---|---|",
    ]
    for i in sorted(bins):
        lines.append(f"| {i / 5:.1f} to {(i + 1) / 5:.1f} | {len(bins[i])} | {percent(np.mean(bins[i]))} |")
    return lines


def measure_techniques(papers: Sequence[Paper]) -> tuple[tuple[float, float, float], list[str]]:
    """How often the likest techniques are ones that a paper's own file names, when that file is left out."""
    filed = {title_key(p.title): p for key in paper_keys() if (p := get_paper(key)) and p.techniques}
    names = {d.name for d in described()}
    description: list[list[tuple[float, bool]]] = []
    for paper in papers:
        if (own := filed.get(title_key(paper.title))) is None or not names & set(own.techniques):
            continue
        others = [p for p in filed.values() if p is not own]
        likest = likeness(paper.title, paper.abstract, compared(described(), others))[:3]
        description.append([(score, name in own.techniques) for name, score in likest])
    flat = np.array([pair for three in description for pair in three])
    model = LogisticRegression(C=10.0).fit(flat[:, :1], flat[:, 1])
    curve = (float(model.coef_[0, 0]), float(model.intercept_[0]), float(flat[:, 0].max()))
    sure = 1.0 / (1.0 + np.exp(-(curve[0] * flat[:, 0] + curve[1])))
    first = np.mean([three[0][1] for three in description])
    lines = [
        f"**Techniques**, of {len(description)} papers whose file names a technique of orrery ({len(names)} "
        f"in all), each "
        f"file left out in turn: the likest technique is one of the paper's for {percent(first)}, one of the likest "
        f"three for {percent(np.mean([any(hit for _, hit in three) for three in description]))}.",
        "",
        "| confidence said | techniques | right |",
        "|---|---|---|",
    ]
    for low, high in ((0.0, 0.15), (0.15, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.01)):
        inside = (sure >= low) & (sure < high)
        right = percent(flat[inside, 1].mean()) if inside.any() else "-"
        lines.append(f"| {low:.2g} to {min(high, 1.0):.2g} | {inside.sum()} | {right} |")
    return curve, lines


def write_weights(
    papers: Sequence[Paper], layers: Sequence[str], sharpness: float, curve: tuple[float, float, float]
) -> None:
    """Learn from all papers, and write one small file: a byte for each word of each layer."""
    model, places, rarities = _fit_layers(
        [counted(p.title, p.abstract) for p in papers], np.array([p.layer for p in papers])
    )
    assert list(model.classes_) == list(layers)
    claims = _fit_claims(_examples(papers))
    scales = np.abs(model.coef_).max(axis=1) / 127.0
    np.savez_compressed(
        FILE,
        layers=np.array(layers),
        words=np.array(list(places)),
        rarities=rarities.astype(np.float16),
        layer_scales=scales.astype(np.float32),
        layer_biases=model.intercept_.astype(np.float32),
        layer_weights=np.round(model.coef_ / scales[:, None]).astype(np.int8),
        sharpness_ratio=np.float32(sharpness),
        claim_features=np.array(list(claims)),
        claim_weights=np.array(list(claims.values()), dtype=np.float16),
        technique_curve=np.array(curve, dtype=np.float32),
    )
    print(f"{FILE}: {FILE.stat().st_size / 1e3:.0f} kB, {len(places)} words, {len(claims)} features", file=sys.stderr)


if __name__ == "__main__":
    main()

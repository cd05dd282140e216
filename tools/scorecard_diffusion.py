"""Diffusion pipelines on the scorecard: errors on models that had no part in any fit, by tools/fit/diffusion.py."""

from collections.abc import Mapping

KEY = "diffusion, a model left out"
TITLES = {
    "latency_s": "Images and videos, a model left out",
    "power_w": "",
    "energy_j_per_item": "Images and videos, a model left out",
}
"""By metric, what the README calls it; power is on the page alone, for joules have it in them."""

TEXT = """
Batches of text-to-image and text-to-video pipelines on one to eight devices with Ulysses and ring degrees (ML.ENERGY,
xDiT). Nine constants serve all models and devices; each model is predicted with constants that were fitted without it
(a cell: median / mean / 90th percentile). Passes over activations and operators were counted in the frameworks' code,
and two rules (which text is dealt out, norms in 32 bits) were looked up there after a first fit had shown where it was
off. By `python tools/fit/diffusion.py`.
"""

Errors = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By metric and group: rows, median, mean, p90 and bias."""


def diffusion_lines(found: Errors) -> list[str]:
    """The page's table."""
    lines = ["| metric | group | rows | **orrery** | bias |", "|---|---|---|---|---|"]
    for metric, groups in found.items():
        for group, e in groups.items():
            cells = " / ".join(f"{100 * e[k]:.1f}" for k in ("median", "mean", "p90"))
            lines.append(f"| `{metric}` | {group} | {e['rows']:,} | **{cells}** | {100 * e['bias']:+.1f} |")
    return lines


def diffusion_summary(found: Errors) -> list[str]:
    """Lines of the README's first table."""
    shown = ((title, metric) for metric, title in TITLES.items() if title and metric in found)
    entries = [(title, metric, found[metric]["all"]) for title, metric in shown]
    return [f"| {t}: `{m}` | {e['rows']:,} |  |  | **{100 * e['median']:.1f} %** |" for t, m, e in entries]

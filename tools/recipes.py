"""Measure every post-training recipe on one drawn layer and write docs/models/recipes.md.

python tools/recipes.py            # a minute or two on one core
"""

import sys
from pathlib import Path

import numpy as np

from orrery.base.errors import OrreryError
from orrery.numerics.draws import draw
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.layer import Layer, Scheme
from orrery.numerics.recipes.prepare import RECIPES, measure, prepare

PAGE = Path(__file__).resolve().parents[1] / "docs" / "models" / "recipes.md"

OUT, WIDTH, TOKENS = 64, 256, 1024
SCHEMES = (("int4/128:fp16", ""), ("int8/row", "int8/row"), ("mxfp4", "mxfp4"), ("nvfp4", "nvfp4"))
COMBINED = (("smoothquant", "gptq"), ("hadamard", "gptq"), ("smoothquant", "gptq", "low-rank"))

HEAD = """# Recipes, measured

What each post-training recipe does to one linear layer, in decibels of the output's signal over noise on activations
that no recipe has seen: more is better, 6 dB halve the error. Made by `python tools/recipes.py`.

The layer has {width} inputs and {out} outputs; weights are drawn as `weights`, activations as `activations`
(correlated channels, 1 % of them 10 to 60 times as large), {tokens} tokens to calibrate on and as many to judge by. It
is no model's: real layers differ, and the order of recipes with them. `orrery quantize FILE --recipes …` measures
your own.

W is the format of the weights, A that of the activations (16 bits where none is named).

"""

CODE = """
Code: `numerics/recipes/techniques`, one short file a recipe; `numerics/recipes/prepared.py` keeps their order (bases,
grids, one rounding, corrections). `format-search` and `power-exponent` choose formats of their own with as many bits;
`qfx` takes 8-bit fixed point for weights and activations, whatever the scheme. `low-rank` and bases that cannot be
folded cost bytes and operations, which `orrery quantize` shows.
"""


def main() -> None:
    """Measure, and write the page."""
    drawn = draw("activations", (2 * TOKENS, WIDTH), 2)
    previous = draw("weights", (WIDTH, 64), 3)
    layer = Layer(
        weights=draw("weights", (OUT, WIDTH), 1),
        inputs=drawn[:TOKENS],
        held_out=drawn[TOKENS:],
        previous_weights=previous,
    )
    known = RECIPES.techniques
    named = [((), "nearest rounding alone", ""), *(((n,), n, known[n].gains) for n in known if n != "round-to-nearest")]
    named += [(names, ", ".join(names), "in that order") for names in COMBINED]
    heads = [f"W {w}" + (f", A {a}" if a else "") for w, a in SCHEMES]
    rows = [f"| recipe | {' | '.join(heads)} | what it is for |", "|---" + "|---:" * len(heads) + "|---|"]
    for recipes, title, gains in named:
        cells = [_decibels(layer, recipes, *scheme) for scheme in SCHEMES]
        rows.append(f"| {title} | {' | '.join(cells)} | {gains} |")
        print(rows[-1], file=sys.stderr)
    PAGE.write_text(HEAD.format(width=WIDTH, out=OUT, tokens=TOKENS) + "\n".join(rows) + "\n" + CODE, encoding="utf-8")


def _decibels(layer: Layer, recipes: tuple[str, ...], weights: str, activations: str) -> str:
    """Of the output after some recipes; a dash where they do not go with the formats."""
    scheme = Scheme(weights=grid(weights), activations=grid(activations) if activations else None)
    try:
        prepared = prepare(layer, scheme, recipes, np.random.default_rng(0))
    except OrreryError:
        return "-"
    return f"{measure(prepared, layer).output_sqnr_db:.1f}"


if __name__ == "__main__":
    main()

"""Colours and type of every drawing, light and dark, as one style sheet that reaches no further than its own drawing.

The hues are those of Okabe and Ito (2008), told apart by people who see fewer colours; the light set is darkened and
the dark set lightened until each stands out from the paper. A page sets ``--orr-paper``, ``--orr-ink``,
``--orr-muted``, ``--orr-grid`` or ``--orr-1`` … ``--orr-8`` to use its own; ``data-theme`` on the page's root,
``light`` or ``dark``, goes before what the system asks for.
"""

NUM_HUES = 8

LIGHT = {
    "paper": "#fff",
    "ink": "#1b1f24",
    "muted": "#59626c",
    "grid": "#e3e6ea",
    "1": "#0072b2",
    "2": "#c97f00",
    "3": "#009e73",
    "4": "#c2699b",
    "5": "#3394cf",
    "6": "#d55e00",
    "7": "#8f8a1c",
    "8": "#7d858e",
}
DARK = {
    "paper": "#14181d",
    "ink": "#e8eaed",
    "muted": "#a3acb6",
    "grid": "#2c333b",
    "1": "#5aa9e6",
    "2": "#e69f00",
    "3": "#2bbd92",
    "4": "#e08fbd",
    "5": "#9ad4f5",
    "6": "#ff8a4c",
    "7": "#d9d155",
    "8": "#98a2ad",
}
ON_HUE = {"light": ("#fff", *["#111"] * 7), "dark": ("#111",) * 8}
"""Ink on each hue, first to last."""

FONT = "system-ui,-apple-system,sans-serif"

_RULES = (
    ("", "text", f"font:12px {FONT};fill:var(--i)"),
    ("h", ".orr-h", "font-size:15px;font-weight:600"),
    ("s", ".orr-s", "fill:var(--m)"),
    ("n", ".orr-n", "font-size:11px;fill:var(--m);font-variant-numeric:tabular-nums"),
    ("e", ".orr-e", "text-anchor:end"),
    ("m", ".orr-m", "text-anchor:middle"),
    ("o", ".orr-o", "paint-order:stroke;stroke:var(--p);stroke-width:3px;stroke-linejoin:round"),
    ("c", ".orr-c", "fill:var(--on);paint-order:stroke;stroke:var(--k);stroke-width:4px;stroke-linejoin:round"),
    ("q", ".orr-q", "fill:var(--p)"),
    ("g", ".orr-g", "fill:none;stroke:var(--g)"),
    ("a", ".orr-a", "fill:none;stroke:var(--m)"),
    ("v", ".orr-v", "stroke:var(--i);stroke-width:2.5"),
    ("f", ".orr-f", "fill:var(--k)"),
    ("r", ".orr-r", "fill:var(--k);stroke:var(--p)"),
    ("l", ".orr-l", "fill:none;stroke:var(--k,var(--m));stroke-width:2;stroke-linejoin:round"),
    ("w", ".orr-w", "fill:var(--p);stroke:var(--k);stroke-width:1.6"),
    ("d", ".orr-d", "stroke-dasharray:6 4"),
    ("b", ".orr-b", "fill:var(--k);opacity:.16"),
    ("t", ".orr-t", "fill:none;stroke:var(--p);opacity:.45"),
    ("p", ".orr-p>*", "cursor:pointer;outline-offset:2px"),
    ("z", ".orr-z>*", "opacity:.45"),
    ("p", ".orr-p>:hover,.orr-p>:focus-visible", "opacity:1;stroke:var(--i)"),
    ("p", ".orr-p>:focus-visible", "outline:2px solid var(--i)"),
)
"""The letter of the class that a rule serves, whom it meets, and what it says."""


def sheet(scope: str, used: frozenset[str]) -> str:
    """The style of one drawing that uses these classes: every selector begins with the drawing's own class."""
    dot = f".{scope}"
    rules = "".join(
        f"{','.join(f'{dot} {one}' for one in selector.split(','))}{{{body}}}"
        for letter, selector, body in _RULES
        if not letter or letter in used
    )
    hues = [n for n in range(1, NUM_HUES + 1) if f"k{n}" in used]
    own = "".join(f"{dot} .orr-k{n}{{--k:var(--c{n});--on:var(--o{n})}}" for n in hues)
    light, dark = (_colours(*mode, hues, "c" in used) for mode in ((LIGHT, ON_HUE["light"]), (DARK, ON_HUE["dark"])))
    return (
        f"{dot}{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]) {dot}{{{dark}}}}}"
        f":root[data-theme=dark] {dot}{{{dark}}}{rules}{own}"
    )


def _colours(colours: dict[str, str], on_hue: tuple[str, ...], hues: list[int], has_ink_on_hues: bool) -> str:
    plain = [f"--{name[0]}:var(--orr-{name},{colours[name]})" for name in ("paper", "ink", "muted", "grid")]
    own = [f"--c{n}:var(--orr-{n},{colours[str(n)]})" for n in hues]
    return ";".join([*plain, *own, *(f"--o{n}:{on_hue[n - 1]}" for n in hues if has_ink_on_hues)])

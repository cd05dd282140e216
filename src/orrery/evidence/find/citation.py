"""A paper as an entry of a BibTeX file."""

from collections.abc import Sequence

_SIGNS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "&%$#_{}"} | _SIGNS)
"""Signs that TeX would take for commands."""


def bibtex(
    key: str,
    title: str,
    *,
    year: int | None,
    arxiv: str = "",
    url: str = "",
    authors: Sequence[str] = (),
    keywords: Sequence[str] = (),
) -> str:
    """One ``@misc`` entry. The title keeps its capitals; what is not known is left out.

    >>> print(bibtex("two-pass-softmax", "The Two-Pass Softmax Algorithm", year=2020, arxiv="2001.04438"))
    @misc{two-pass-softmax,
      title = {{The Two-Pass Softmax Algorithm}},
      year = {2020},
      eprint = {2001.04438},
      archivePrefix = {arXiv},
    }
    """
    fields = {
        "title": f"{{{title.translate(_ESCAPED)}}}",
        "author": " and ".join(author.translate(_ESCAPED) for author in authors),
        "year": str(year or ""),
        "eprint": arxiv,
        "archivePrefix": "arXiv" if arxiv else "",
        "url": url.replace("{", "%7B").replace("}", "%7D"),
        "keywords": ", ".join(word.translate(_ESCAPED) for word in keywords),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{_label(key)},", *lines, "}"])


def _label(key: str) -> str:
    """A key that BibTeX reads: letters, digits and a few signs."""
    return "".join(c if c.isalnum() or c in "-.:" else "-" for c in key)

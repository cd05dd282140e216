"""Names and docstrings use the words of the field: the retired ones do not come back."""

import re
from pathlib import Path

from battery import over

from checks.modules import module_at, module_in

SOURCE = Path(__file__).resolve().parents[2] / "src"
FILES = sorted(SOURCE.rglob("*.py"))

NAMES = {
    "a noun or a verb that says what it is": re.compile(
        "^(?:told|said|asked|kept|wanted|lacks|wishes|doubt_of|unrest_of|upright|spots|killed|COMMAND)$"
    ),
    "a class named after what it holds": re.compile(
        "^(?:Told|Asked|Kept|Held|Wanted|Wishes|Desk|Killed|Again|CannotBe|World|Doors|Course|Spot|Shelf|Going|Doubt"
        "|Gang|Strike|Setback|Spells|Lesson|Odds|Whole|Asker|Answerer|Understood|Judged|Unjudged|Suspect|Swing|Likeness"
        "|Recent|Emitted)$"
    ),
    "MAX_ or MIN_": re.compile("^_?(?:MOST|LEAST)_"),
}
"""What to write instead, and the names of classes, functions, arguments and variables that are retired."""

MODULES = re.compile(
    r"(?:^|\.)(?:desk|doors|sureness|told|said|shelf|elsewhere|alike|meant|booking|holding|guarded|why_not|seam|mistakes)$"
)

OPENINGS = {
    "the thing itself: a noun, or a verb": re.compile(
        r"^(?:Of|Whose|Whom?|So (?:many|much|long)|As (?:it|they)|It (?:is|does)|That many|Those|Everything|Nothing"
        r"|Something|What|How (?!many\b|much\b|long\b|often\b))\b"
    ),
    "'as text' or 'formatted'": re.compile(r"\bin words\b(?! of \d| a person| that)"),
}
"""What to write instead, and how docstrings and strings below constants do not begin, or do not say."""


def _place(path: Path) -> str:
    return str(path.relative_to(SOURCE))


@over(FILES, named=_place)
def test_names_and_docstrings_are_in_the_words_of_the_field(path: Path) -> None:
    read = module_at(path)
    found = [
        f"line {line}: {text[:60]!r}: write {instead}"
        for texts, rules in ((read.names, NAMES), (read.texts, OPENINGS))
        for line, text in texts
        for instead, retired in rules.items()
        if retired.search(text)
    ]
    module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    assert not found, "; ".join(found)
    assert not MODULES.search(module), f"{module}: name the module after what it holds"


def test_retired_words_are_seen() -> None:
    read = module_in('"""Of a step, in words."""\ndef told(asked): MOST_ROWS = 1\nclass CannotBe: pass')
    names = [name for _, name in read.names if any(retired.search(name) for retired in NAMES.values())]
    assert sorted(names) == ["CannotBe", "MOST_ROWS", "asked", "told"]
    assert [sum(bool(retired.search(text)) for retired in OPENINGS.values()) for _, text in read.texts] == [2]
    assert MODULES.search("orrery.drawing.told")
    assert not MODULES.search("orrery.drawing.captions")

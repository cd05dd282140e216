"""The gallery: each command is run as printed, and the sentence and picture beside it are what it answers."""

from xml.etree import ElementTree

import pytest

import gallery
from gallery_questions import QUESTIONS

MAX_BYTES = 20_000
PAGE = (gallery.DOCS / "gallery.md").read_text("utf-8")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_the_sentence_is_what_the_command_answers(question, tmp_path):
    plain = gallery.ask(question, tmp_path)
    assert gallery.section(question, question.sentence(plain)) in PAGE, "run python tools/gallery.py"
    drawn = ElementTree.fromstring(question.draw(plain, question.question))
    kept = ElementTree.parse(gallery.DOCS / gallery.IMAGES / f"{question.name}.svg").getroot()
    assert list(kept.itertext()) == list(drawn.itertext()), "run python tools/gallery.py"


def test_the_page_has_ten_questions_and_nothing_else():
    assert len(QUESTIONS) == 10
    assert [line[3:] for line in PAGE.splitlines() if line.startswith("## ")] == [q.question for q in QUESTIONS]
    pictures = sorted((gallery.DOCS / gallery.IMAGES).iterdir())
    assert [p.name for p in pictures] == sorted(f"{q.name}.svg" for q in QUESTIONS)
    assert all(p.stat().st_size < MAX_BYTES for p in pictures)
    assert all((gallery.DOCS / q.page).is_file() for q in QUESTIONS)

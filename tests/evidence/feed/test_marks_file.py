"""Marks in a file: written, read back, and refused where they are none."""

import json

import pytest

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.marks import Marks, followed
from orrery.evidence.feed.marks_file import marks_json, read_marks_file

MARKS = Marks(
    read=frozenset({"2401.09670", "title:abc"}),
    upvoted=frozenset({"2401.09670"}),
    layers=("moe", "serving"),
    techniques=("chunked-prefill",),
    words=("four bits", "ÅÄÖ"),
)


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "marks.json"
    path.write_text(json.dumps({**marks_json(MARKS), "titles": {"2401.09670": "T"}}), encoding="utf-8")
    assert read_marks_file(path) == MARKS
    path.write_text("{}", encoding="utf-8")
    assert read_marks_file(path) == Marks()


def test_everything_that_is_followed_has_its_kind():
    assert followed(MARKS)[0] == ("layer", "moe")
    assert followed(MARKS)[-1] == ("words", "ÅÄÖ")
    assert followed(Marks()) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no JSON"),
        ("[]", "is no table of marks"),
        ('{"red": []}', "unknown key red; known: read, upvoted"),
        ('{"read": "2401.09670"}', "read: got"),
        ('{"read": [3]}', "write a list of names in quotes"),
        ('{"upvoted": [" "]}', "write a list of names in quotes"),
        ('{"follows": []}', "write a list each for layer, technique, words"),
        ('{"follows": {"author": ["Dao"]}}', "write a list each for layer, technique, words"),
        ('{"follows": {"layer": "moe"}}', "follows.layer: got"),
        (json.dumps({"read": ["x" * 501]}), "write a list of names in quotes"),
        (json.dumps({"read": ["x"] * 50_001}), "50000 are the most"),
    ],
)
def test_what_is_no_file_of_marks_is_refused(tmp_path, text, says):
    path = tmp_path / "marks.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FeedError, match=says):
        read_marks_file(path)


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(FeedError, match=r"marks\.json"):
        read_marks_file(tmp_path / "marks.json")

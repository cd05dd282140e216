"""The first change that the docs describe works as they print it."""

import inspect
import re
from pathlib import Path

from orrery.serving.techniques.shortest_first import order as neighbour

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "first-change.md").read_text(encoding="utf-8")
TECHNIQUE, TEST = re.findall(r"^```py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_policy_and_its_test_run_as_printed():
    names = {"__name__": "longest_first"}
    exec(compile(TECHNIQUE, "longest_first.py", "exec"), names)
    exec(compile(TEST, "test_longest_first.py", "exec"), names)
    names["test_the_longest_output_goes_first"]()
    assert names["TECHNIQUE"].extension_point == "serving.queue"
    assert list(inspect.signature(names["order"]).parameters) == list(inspect.signature(neighbour).parameters)

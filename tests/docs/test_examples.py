"""Every example in the documentation is run: Python blocks as doctests, console blocks through the command line."""

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import click
import pytest

from orrery.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXIT = re.compile(r"#\s*exit (\d)")  # a command that is meant to fail says so: # exit 3


SLOW = {
    "docs/calibrate-my-machine.md-1",
    "docs/calibrate-runs.md-1",
    "docs/decoding.md-4",
    "docs/fleet.md-1",
    "docs/fleet.md-14",
    "docs/how-many-gpus.md-2",
    "docs/how-many-gpus.md-3",
    "docs/models/predictors.md-1",
    "docs/models/predictors.md-2",
    "docs/models/predictors.md-3",
    "docs/models/predictors.md-4",
    "docs/models/predictors.md-5",
    "docs/report.md-1",
    "docs/rl.md-4",
    "docs/search.md-3",
    "docs/training-techniques.md-7",
    "docs/training.md-3",
    "docs/under-load.md-3",
    "docs/what-if.md-2",
}
"""Blocks that take seconds: they train, search or wait for a quiet machine. The default run only reads their flags;
what they ask is asked of smaller ones in the tests of their floor."""

ELSEWHERE = {"docs/web.md-1"}
"""Blocks whose command another test runs as it is printed: tests/web/test_site.py."""


def blocks(language):
    """(page and number, text) of every fenced block in that language."""
    for page in PAGES:
        found = [text for word, text in FENCE.findall(page.read_text(encoding="utf-8")) if word == language]
        for number, text in enumerate(found, start=1):
            name = f"{page.relative_to(ROOT)}-{number}"
            if name in ELSEWHERE:
                continue
            yield pytest.param(text, id=name, marks=[pytest.mark.slow] if name in SLOW else [])


def commands(text):
    """The ``orrery`` commands of a console block, continued lines joined."""
    joined = text.replace("\\\n", " ")
    return [line[2:] for line in joined.splitlines() if line.startswith("$ orrery ")]


@pytest.mark.parametrize("text", list(blocks("python")))
def test_python_examples_hold(text):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    example = doctest.DocTestParser().get_doctest(text, {}, "example", None, 0)
    assert example.examples, "a Python block must be an interactive session (>>>)"
    message = io.StringIO()
    failed = doctest.DocTestRunner(optionflags=flags).run(example, out=message.write).failed
    assert not failed, message.getvalue()


@pytest.mark.parametrize("text", [p for p in blocks("console") if commands(p.values[0])])
def test_commands_in_the_docs_run(text, tmp_path, monkeypatch):
    for name in ("data",):
        if (ROOT / "docs" / name).is_dir():
            (tmp_path / name).symlink_to(ROOT / "docs" / name)
    monkeypatch.chdir(tmp_path)
    for command in commands(text):
        expected = int(found[1]) if (found := EXIT.search(command)) else 0
        message, wrong = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(message), contextlib.redirect_stderr(wrong):
            code = run(shlex.split(command, comments=True)[1:])
        assert code == expected, f"{command}\n{wrong.getvalue()}"
        if expected == 0:
            assert message.getvalue().strip(), f"{command} printed nothing"


@pytest.mark.parametrize("name", sorted(SLOW))
def test_flags_of_slow_commands_are_known(name, monkeypatch):
    """Each command is read to its last word, and not run."""
    monkeypatch.setattr(click.Command, "invoke", lambda command, context: None)
    page, number = name.rsplit("-", 1)
    texts = [text for word, text in FENCE.findall((ROOT / page).read_text(encoding="utf-8")) if word == "console"]
    found = commands(texts[int(number) - 1])
    assert found, f"{name}: no command stands in this block"
    assert [command for command in found if run(shlex.split(command, comments=True)[1:])] == []


def test_links_between_pages_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)} -> {target}")
    assert not broken, "\n".join(broken)

"""Commands that put a paper's technique into a deployment: every core paper has one, or says why not, and each runs."""

import contextlib
import io
import shlex
from pathlib import Path

import click
import pytest

from orrery.cli.main import cli, run
from orrery.evidence.paper_file import get_paper, paper_keys

ROOT = Path(__file__).resolve().parents[2]
CORE = [key for key in paper_keys() if get_paper(key).fit == "core"]
USES = {key: use for key in paper_keys() if (use := get_paper(key).use)}
LONG = ("help-latency-predictor", "meta-learning-acceleration-choice")
"""Papers whose command learns for seconds."""

SAMPLE = [key for key in sorted(USES)[::12] if key not in LONG]


def words(use):
    first, *rest = shlex.split(use)
    assert first == "orrery", use
    return rest


def test_every_core_paper_says_how_it_is_used_or_why_not():
    papers = [get_paper(key) for key in CORE]
    silent = [p.key for p in papers if not p.use and not p.no_use]
    both = [p.key for p in papers if p.use and p.no_use]
    assert (silent, both) == ([], [])
    assert len(CORE) == 128


def test_every_command_has_the_flags_that_are_written():
    wrong = []
    for key, use in USES.items():
        name, *rest = words(use)
        command = cli.get_command(click.Context(cli), name)
        try:
            command.make_context(name, list(rest), resilient_parsing=False)
        except click.ClickException as error:
            wrong.append(f"{key}: {error.format_message()}")
    assert not wrong


def done(use, monkeypatch):
    monkeypatch.chdir(ROOT)  # files of the docs are named from there
    message, wrong = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(message), contextlib.redirect_stderr(wrong):
        code = run(words(use))
    assert code == 0, f"{use}\n{wrong.getvalue()}"
    assert message.getvalue().strip(), use


@pytest.mark.parametrize("key", SAMPLE)
def test_some_of_the_commands_run(key, monkeypatch):
    done(USES[key], monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(USES) - set(SAMPLE)))
def test_all_other_commands_run(key, monkeypatch):
    done(USES[key], monkeypatch)

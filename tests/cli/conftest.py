"""What tests of several commands share."""

import pytest

from orrery.cli.main import run


@pytest.fixture
def describe(capsys):
    """Run a command line: the exit code, standard output and standard error."""

    def call(*arguments):
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call

"""A process that stands ready with everything imported, and answers one question after the other."""

import os
import signal
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pkgutil import resolve_name
from typing import Any

from orrery.base.errors import OrreryError, ScenarioError
from orrery.web.work.failed import WorkFailed

NICENESS = 5
"""Answers come after pages: a page is short, and somebody looks at it."""


ANSWERS = "orrery.web.work.questions:answered"
"""The function that answers a question and its settings; imported in the worker process alone, where it takes
seconds.
"""


START_S = 120.0
"""A process that has not imported everything by then never will."""


class AnswerWorker:
    """One such process. It starts when it is made, may be asked at once, and has its time from when it is ready."""

    def __init__(self, answers: str = ANSWERS) -> None:
        context = get_context("spawn")
        self._line, theirs = context.Pipe()
        self._process = context.Process(target=answer_all, args=(theirs, answers), daemon=True)
        self._is_ready = False
        self._process.start()
        theirs.close()

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked."""
        return self._process.is_alive()

    def ask(self, question: str, settings: Mapping[str, Any], within_s: float) -> dict[str, Any]:
        """The answer; the errors of a question are raised here as well. WorkFailed: ask another process."""
        try:
            if not self._is_ready:
                if not self._line.poll(START_S):
                    raise EOFError
                self._line.recv()
                self._is_ready = True
            self._line.send((question, dict(settings)))
            if not self._line.poll(within_s):
                self.end()
                raise WorkFailed(f"{question}: no answer within {within_s:g} s; ask for less, or start it as a run.")
            answer, error = self._line.recv()
        except (EOFError, OSError):
            self.end()
            raise WorkFailed(
                f"{question}: the process that worked on it ended early; is there enough memory?"
            ) from None
        if isinstance(error, OrreryError):
            raise error
        if error is not None:
            raise WorkFailed(f"{question}: {error} (internal error).")
        return answer

    def end(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.join()
        self._line.close()


def answer_all(line: Connection, answers: str) -> None:
    """The life of the process: until nobody is on the line. ``answers`` names the function that does it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this one
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    answered = resolve_name(answers)
    line.send("ready")
    while True:
        try:
            question, settings = line.recv()
        except EOFError:
            return
        try:
            text = answered(question, settings), None
        except OrreryError as error:
            text = None, ScenarioError(str(error))
        except Exception as error:  # one question's failure must not end the others
            text = None, f"{type(error).__name__}: {error}"
        try:
            line.send(text)
        except OSError:
            return

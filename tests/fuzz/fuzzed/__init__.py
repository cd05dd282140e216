"""One file a reader: ``SEEDS`` to start from, ``WORDS`` that it knows, and ``read``, which may raise what ``REFUSALS``
lists and nothing else."""

from collections.abc import Callable

from orrery.base.errors import OrreryError


def describe(*asks: Callable[[], object], refusals: tuple[type[Exception], ...] = (OrreryError,)) -> str:
    """What several readers of the same bytes say, each in a few letters."""
    answers: list[str] = []
    for ask in asks:
        try:
            ask()
            answers.append("read")
        except refusals as error:
            answers.append(f"{type(error).__name__} {str(error)[-50:]}")
    return "; ".join(answers)

"""Chains of products as people write them: ``512x768x!3072x768``."""

from itertools import pairwise

from orrery.base.errors import ScenarioError
from orrery.execution.dataflow.chain import Task

BYTES = 2.0
WAITS = "!"


def read_chain(words: str) -> tuple[Task, ...]:
    """Products in order: rows x first inputs x outputs of each; a marked one needs all of what comes before.

    >>> [task.name for task in read_chain("512x768x!3072x768")]
    ['768 to 3072', '3072 to 768']
    """
    first, *widths = (part.strip() for part in words.strip().casefold().split("x"))
    plain = [width.removeprefix(WAITS) for width in widths]
    if len(widths) < 2 or not all(part.isdigit() and int(part) > 0 for part in (first, *plain)):
        raise ScenarioError(
            f"chain: got {words!r}; write rows and widths, such as 512x768x3072x768, with ! before a "
            "width whose product needs all of its input first."
        )
    rows = int(first)
    tasks: list[Task] = []
    for before, after in pairwise(widths):
        inputs, outputs = (int(width.removeprefix(WAITS)) for width in (before, after))
        tasks.append(
            Task(
                name=f"{inputs} to {outputs}",
                flops=2.0 * rows * inputs * outputs,
                weight_bytes=BYTES * inputs * outputs,
                input_bytes=BYTES * rows * inputs,
                output_bytes=BYTES * rows * outputs,
                needs_all=after.startswith(WAITS),
            )
        )
    return tuple(tasks)

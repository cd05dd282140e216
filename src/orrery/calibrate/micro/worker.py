"""One process that measures one group: a program that fails, or that takes the device down, ends with it.

Every line of its output is an object: what the device is called, a result, or a failure.
"""

import json
import sys
from dataclasses import asdict
from typing import Any

from orrery.calibrate.micro.groups import Benchmark, benchmarks, subject
from orrery.calibrate.micro.reading import Failed


def main(platform: str, group: str, index: int) -> None:
    """Measures the group, a line for each result as soon as it is there."""
    try:
        found, title = subject(platform, group, index)
    except Exception as error:
        _say(failed=asdict(Failed(name=group, error=_words(error))))
        return
    _say(device=title)
    for benchmark in benchmarks(platform, group):
        _run(benchmark, found)


def _run(benchmark: Benchmark, found: Any) -> None:
    try:
        for result in benchmark(found):
            _say(**{"failed" if isinstance(result, Failed) else "reading": asdict(result)})
    except Exception as error:
        _say(failed=asdict(Failed(name=benchmark.__name__, error=_words(error))))


def _words(error: Exception) -> str:
    first = (str(error).strip().splitlines() or [""])[0]
    return first or type(error).__name__


def _say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

"""How many files and functions does one estimate run through?

    python tools/checks/files_of_an_estimate.py [--list]

A reader who follows one number through the code opens these files. The question has been asked once before, so that
what is read only once (facts, imports) is not counted.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import orrery
from orrery.kernels.dispatch import retained

SOURCE = str(Path(orrery.__file__).parent) + "/"
COMPREHENSIONS = frozenset({"<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>"})


def batch() -> object:
    """A static batch of a dense model on one device."""
    return orrery.estimate(model="llama-3.1-8b", device="h100-sxm", input_tokens=1024, output_tokens=256, batch=8)


def closed_loop() -> object:
    """The same at a concurrency, where requests come and go."""
    return orrery.estimate(
        model="llama-3.1-8b", device="h100-sxm", input_tokens=1024, output_tokens=256, concurrency=32
    )


def functions_of(question: Callable[[], object]) -> set[tuple[str, str]]:
    """Files of the package, and functions in them, that a question runs through when it is asked again."""
    found: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_name not in COMPREHENSIONS:
            found.add((code.co_filename.removeprefix(SOURCE), code.co_qualname))

    question()
    retained.cache_clear()  # of kernels, which are read by a rule
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        question()
    finally:
        sys.setprofile(before)
    return found


def main() -> None:
    """Print the counts of both questions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="name the files, with their functions")
    is_listed = parser.parse_args().list
    for question in (batch, closed_loop):
        found = functions_of(question)
        files = sorted({file for file, _ in found})
        print(f"{question.__name__}: {len(files)} files, {len(found)} functions")
        for file in files if is_listed else ():
            print(f"  {file}: {', '.join(sorted(name for of, name in found if of == file))}")


if __name__ == "__main__":
    main()

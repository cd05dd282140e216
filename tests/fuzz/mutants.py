"""Inputs like those that a reader knows: a seed with some bytes changed, words put in, pieces left out or doubled.

Where Atheris is not installed, the corpus grows by what a reader answered: an input whose answer (the kind of error
and its words, numbers left out) is new is kept, and changed further. Hypothesis makes the changes and shrinks a find.
"""

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

MAX_BYTES = 100_000
MAX_S = 5.0
"""Of one input, of this process's own time."""


@st.composite
def mutants(draw: st.DrawFn, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One of a corpus after a few changes."""
    data = draw(st.sampled_from(corpus))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.one_of(st.integers(0, 8), st.integers(0, 200))))
        put = draw(
            st.one_of(
                st.sampled_from((b"", data[start:end] * 2, *words)), st.binary(max_size=4), st.sampled_from(corpus)
            )
        )
        data = (data[:start] + put + data[end:])[:MAX_BYTES]
    return data


def tried(reader: ModuleType, data: bytes, folder: Path) -> str:
    """What a reader answers to an input, in words; raises what the reader should not have raised."""
    path = folder / reader.NAME
    path.write_bytes(data)
    if hasattr(reader, "forget"):
        reader.forget()
    begun_s = time.process_time()
    try:
        answer = reader.read(path) or "read"
    except reader.REFUSALS as error:
        answer = f"{type(error).__name__} {error}"
        assert len(answer) < 10_000, "a message of an endless length"
    took_s = time.process_time() - begun_s
    assert took_s < MAX_S, f"{took_s:.1f} s for {len(data):,} bytes"
    return re.sub(r"\d+|'[^']*'", "", answer)[:400]


def grown(reader: ModuleType, folder: Path, corpus: list[bytes], num_tries: int, number: int) -> Iterator[bytes]:
    """Try so many inputs, and give those whose answers were new."""
    answers = {tried(reader, data, folder) for data in corpus}
    retained: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=num_tries,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(mutants(tuple(corpus), reader.WORDS))
    def one(data: bytes) -> None:
        answer = tried(reader, data, folder)
        if answer not in answers:
            answers.add(answer)
            retained.append(data)

    one()
    yield from retained

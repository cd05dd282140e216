"""A short look at every reader with inputs that are nearly right; ``make fuzz`` looks for as long as it is let."""

from importlib import import_module
from pkgutil import iter_modules

import fuzzed
import pytest

from mutants import grown

READERS = sorted(found.name for found in iter_modules(fuzzed.__path__))
NUM_TRIES = 60


@pytest.mark.parametrize("name", READERS)
def test_a_reader_refuses_in_words_whatever_it_gets(name, tmp_path):
    reader = import_module(f"fuzzed.{name}")
    retained = list(grown(reader, tmp_path, list(reader.SEEDS), NUM_TRIES, number=1))
    assert retained, "no change of a seed makes any difference"

"""Words that a search was found by, in the text of a card; the text of a paper may be anybody's."""

import pytest

from orrery.web.found_words import marked


@pytest.mark.parametrize(
    ("text", "because", "shown"),
    [
        ("Caches of keys", "cache, quota", "<mark>Caches</mark> of keys"),
        ("The key-value cache is small.", "cache, key value cache", "The <mark>key-value cache</mark> is small."),
        ("A keyboard", "key", "A keyboard"),  # whole words alone
        ("compressed, compressing", "compress", "<mark>compressed</mark>, <mark>compressing</mark>"),
        ("a < b & <mark>", "", "a &lt; b &amp; &lt;mark&gt;"),
        ("<b>cache</b>", "cache", "&lt;b&gt;<mark>cache</mark>&lt;/b&gt;"),
        ("c++ and (a+)+$", "(a+)+$, c++", "c++ and (a+)+$"),  # no pattern of the text's own
    ],
)
def test_words_are_marked_and_everything_else_is_escaped(text, because, shown):
    assert str(marked(text, because)) == shown

"""How the tests read a drawing: its elements, whatever their namespace."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest


class Drawing:
    """A parsed chart."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root = ElementTree.fromstring(text)
        for element in self.root.iter():
            element.tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")

    def all(self, tag: str, kind: str = "") -> list[ElementTree.Element]:
        """Elements of a tag, and of a class if one is named."""
        return [e for e in self.root.iter(tag) if not kind or kind in e.get("class", "").split()]

    @property
    def desc(self) -> str:
        return self.root.find("desc").text or ""

    @property
    def words(self) -> list[str]:
        """Every line of text that is seen."""
        return [e.text or "" for e in self.all("text")]

    @property
    def tooltips(self) -> list[str]:
        return [e.text or "" for e in self.all("title")[1:]]

    def places(self, kind: str) -> list[list[tuple[float, float]]]:
        """The corners of every path of a class that is made of M and L alone."""
        return [
            [tuple(map(float, pair.split())) for pair in re.split("[ML]", e.get("d").removesuffix("z"))[1:]]
            for e in self.all("path", kind)
        ]


@pytest.fixture(scope="session")
def read() -> Callable[[str], Drawing]:
    return Drawing

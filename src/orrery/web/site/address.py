"""Addresses of the site's own pages, relative to the page that links, so that any folder of any host serves them."""

import re

_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A name as a file's: letters, digits, dots and dashes."""
    return _OTHER.sub("-", name).strip(".-")


def root_of(path: str) -> str:
    """Relative path from a page to the site's root: ``../`` for each folder."""
    return "../" * path.count("/")

"""Write the site into a folder: pages, scripts, styles, and the index of its search."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from orrery import __version__
from orrery.base.errors import ScenarioError
from orrery.web.assets import STATIC, TERMS, terms_script
from orrery.web.render import environment
from orrery.web.site.address import root_of
from orrery.web.site.content import MENU, SitePage, best_path, pages

MARK = ".orrery-site"
"""The file that says that a folder was written by an export, which may write it anew."""

SCRIPTS = (
    "style.css",
    "best.css",
    "site.css",
    "page.js",
    "define.js",
    "best-points.js",
    "best-chart.js",
    "best.js",
    "site.js",
    "icon.svg",
)
MAX_WORDS = 400
"""Letters of one page's words in the index."""


def export(folder: Path, address: str = "", on_page: Callable[[int], None] = lambda done: None) -> int:
    """Write the site; the number of its pages. ``address`` is where it will be served, for the links of previews.

    ScenarioError where the folder holds other things than an earlier export.
    """
    _prepare(folder)
    written: list[SitePage] = []
    for found in pages():
        _write(folder, found, address)
        written.append(found)
        on_page(len(written))
    found = SitePage(path="search.html", title="Search", template="site_search.html", context={}, kind="list")
    _write(folder, found, address)
    index = [[p.title, p.path, p.kind, p.words[:MAX_WORDS]] for p in written]
    (folder / "static" / "index.js").write_text(f"const INDEX = {json.dumps(index, ensure_ascii=False)};\n", "utf-8")
    return len(written) + 1


def _prepare(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ScenarioError(f"export: {folder} is a file; name a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise ScenarioError(f"export: {folder} holds other files; name a new folder, or one that was exported before.")
    for part in ("static", "cards/best", "cards/papers", "best", "devices", "papers", "dates"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(f"{__version__}\n", "utf-8")
    for name in SCRIPTS:
        shutil.copyfile(STATIC / name, folder / "static" / name)
    (folder / "static" / TERMS).write_text(terms_script(), "utf-8")


def _write(folder: Path, found: SitePage, address: str) -> None:
    root = root_of(found.path)

    def chart_of(model: str) -> str:
        return root + best_path(model)

    if found.card is not None:
        (folder / found.card_path).write_bytes(found.card())
    text = (
        environment()
        .get_template(found.template)
        .render(
            layout="site_base.html",
            root=root,
            is_static=True,
            site_menu=MENU,
            path=found.path,
            page_title=found.title,
            address_of_model=chart_of,
            page_about=found.about,
            card_address=f"{address.rstrip('/')}/{found.card_path}" if address else root + found.card_path,
            has_card=found.card is not None,
            **found.context,
        )
    )
    (folder / found.path).write_text(text, "utf-8")

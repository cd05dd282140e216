import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from orrery.cli.main import run
from orrery.web.app import application
from orrery.web.place import Place, place_at


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Folders of a server whose reader has a library of papers beside them."""
    monkeypatch.setenv("ORRERY_LIBRARY", str(tmp_path / "library" / "library.sqlite"))
    return place_at(tmp_path / "web")


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Asks for pages and leaves nothing behind: all who only read share its processes, which take seconds to start."""
    with TestClient(application(place_at(tmp_path_factory.mktemp("read"))), base_url="http://127.0.0.1") as client:
        yield client


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command of the docs writes, as it is printed there (tests/docs leaves it to this fixture)."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "web.md").read_text("utf-8")
    command = re.findall(r"^\$ orrery (web --export site .*)$", page, re.MULTILINE)
    folder, message = tmp_path_factory.mktemp("exported"), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(message):
        assert run(shlex.split(command[0])) == 0
    assert message.getvalue().startswith(f"{len(list(folder.rglob('*.html')))} pages in site; ")
    return folder / "site"

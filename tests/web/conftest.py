from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from orrery.web.app import application
from orrery.web.place import place_at


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Asks for pages and leaves nothing behind: all who only read share its processes, which take seconds to start."""
    with TestClient(application(place_at(tmp_path_factory.mktemp("read"))), base_url="http://127.0.0.1") as client:
        yield client

import gc
import os
from collections.abc import Callable, Iterator

import certifi
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from orrery.catalog.devices import get_device
from orrery.catalog.engines import get_engine
from orrery.catalog.models import get_model
from orrery.execution.layout import Deployment, Formats, Layout
from orrery.hardware.cluster import Cluster

# How long a busy machine takes is no property of the code. The default run draws the same examples each time, so that
# what fails is the change that was made; HYPOTHESIS_PROFILE=random draws others, and more, as `make drawn` does.
# A property whose examples take long asks for a share: ``settings(max_examples=settings.default.max_examples // 8)``.
settings.register_profile("orrery", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "orrery"))
if settings.default.derandomize:
    # Constants of the sources are no examples: else a number that is changed anywhere draws others everywhere, and two
    # thousand files are read for them in each worker.
    providers._get_local_constants = lambda: providers._local_constants


LONG = ("tests/docs/", "tests/web/browser/", "tests/web/", "tests/scenario/what_if/", "tests/scenario/fleet/")
LONG += ("tests/calibrate/", "tests/every/", "tests/cli/", "tests/fleet/", "tests/numerics/", "tests/training/")
"""Folders whose tests take longest, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the folders of long tests, so that a run ends with short ones, which workers share out evenly."""
    places = {folder: place for place, folder in enumerate(LONG)}
    items.sort(
        key=lambda item: next((at for folder, at in places.items() if item.nodeid.startswith(folder)), len(LONG))
    )


def pytest_collection() -> None:
    """Look for no garbage while tests are collected: nearly everything made lives as long as the run."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: a third of the tests' time went there."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)  # numbers and tuples die without it: searches every 700 took another twentieth
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def few_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Clients trust one authority, and none of them needs it: reading all that are known takes each of them 20 ms."""
    path, end = tmp_path_factory.mktemp("tls") / "one.pem", "-----END CERTIFICATE-----\n"
    path.write_text(certifi.contents().partition(end)[0] + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


def _deploy(
    model: str = "meta-llama/Llama-3.1-70B",
    device: str = "h100-sxm",
    engine: str = "vllm",
    weights: str = "bf16",
    activations: str = "bf16",
    kv: str = "bf16",
    engine_version: str = "",
    max_num_batched_tokens: int = 0,
    memory_utilization_frac: float = 0.0,
    **degrees: int,
) -> Deployment:
    hardware, layout = get_device(device), Layout(**degrees)
    return Deployment(
        model=get_model(model),
        cluster=Cluster(device=hardware, num_devices=layout.num_devices, devices_per_node=hardware.devices_per_node),
        layout=layout,
        formats=Formats(weights=weights, activations=activations, kv=kv),
        engine=get_engine(engine, engine_version, hardware),
        max_num_batched_tokens=max_num_batched_tokens,
        memory_utilization_frac=memory_utilization_frac,
    )


@pytest.fixture
def deploy() -> Callable[..., Deployment]:
    """Makes a deployment; everything has a default."""
    return _deploy


@pytest.fixture(scope="module")
def deploy_any() -> Callable[..., Deployment]:
    """The same for property tests, which want a fixture that lives longer than one example."""
    return _deploy

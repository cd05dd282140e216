"""Drawing from the wall with mixed precision."""

import pytest

from orrery.base.knobs import NoKnobs
from orrery.catalog.devices import get_device
from orrery.training.small.techniques import backpropagation
from orrery.training.small.work import Sizes
from orrery_papers.mixed_precision_carbon.wall_draw import draw, mixed


def test_mixed_precision_draws_less_and_casts():
    work = backpropagation.rule(Sizes(inputs=784, hidden=(1024, 1024), num_classes=10, batch=2048), 0, NoKnobs())
    device = get_device("rtx-3060")
    full, half = draw(work, device, 60.0), draw(mixed(work), device, 60.0)
    assert mixed(work).num_launches > work.num_launches
    assert half.step_s < full.step_s
    assert 5.0 < full.wall_w - half.wall_w < 60.0
    assert full.wall_w == pytest.approx(full.device_w + 60.0)


def test_a_device_that_waits_for_its_host_idles():
    work = backpropagation.rule(Sizes(inputs=16, hidden=(16,), num_classes=2, batch=4), 0, NoKnobs())
    device = get_device("rtx-3060")
    slow = draw(work, device, 0.0, launch_s=1e-2)
    assert slow.step_s == pytest.approx(1e-2 * work.num_launches)
    assert slow.device_w == pytest.approx(device.idle_power_w, rel=0.05)

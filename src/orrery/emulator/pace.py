"""The simulator on a clock: what happens in the service at t seconds, happens here at start + t / speed.

Moments are absolute, so a late one delays none that follow. Everything that is due is computed in one go; requests that
come together are let in together. Between events nothing runs.
"""

import asyncio
from collections import deque

import numpy as np

from orrery.base.errors import OrreryError
from orrery.emulator.asked import Asked
from orrery.emulator.meters import Meters
from orrery.emulator.refusal import Refusal
from orrery.emulator.stream import Choice, Delivery, End, Stream
from orrery.serving.live import Live

RETRY_S = 1
"""After which a client may ask again when the queue is full."""

"""DataStates-LLM: saves that are copied under forward and backward against saves that training waits for."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.catalog.devices import get_device
from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.faults.saving import Saving, stops_s
from orrery.training.faults.techniques.checkpoint_blocking import BlockingKnobs
from orrery.training.faults.techniques.checkpoint_blocking import rule as blocking

STATE_BYTES, FLOPS, PEAK_FRAC, FORWARD_FRAC = 14.0, 6.0, 0.4, 1.0 / 3.0  # see [unstated] step and state


def predict(paper: Paper) -> Iterator[Prediction]:
    """The best case of all sizes and frequencies, as "up to" has it."""
    cases = [case for setup in paper.setups.values() for case in compared(setup)]
    yield Prediction(
        claim="checkpoint-speedup",
        predicted=max(c.plain_s / c.lazy_s for c in cases if c.lazy_s > 0.0),
        because="stops of all saves, waiting for copy and write against waiting for what of the copy no pass hides",
        differs="where storage keeps up nothing stops at all and the ratio has no bound; where it does not, both wait "
        "for it. Fixed costs of a save, which bound the ratio in between, are not modelled",
    )
    yield Prediction(
        claim="run-speedup",
        predicted=max(c.run_ratio for c in cases),
        because="the same run with the stops of either way, saving most often",
        differs="step times are assumed; the paper's writes run below the rate of the links",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One size and frequency: stops of all saves of a run, and the run without them."""

    setup: str
    interval_steps: int
    plain_s: float
    lazy_s: float
    steps_s: float

    @property
    def run_ratio(self) -> float:
        """How many times longer the run is that waits."""
        return (self.steps_s + self.plain_s) / (self.steps_s + self.lazy_s)


def compared(setup: Setup) -> Iterator[Case]:
    """Every frequency that is tried."""
    state, num_steps = saving(setup), int(setup.number("num_steps"))
    for each in setup.numbers("steps_between_saves_swept"):
        steps, count = int(each), num_steps // int(each)
        lazy = stops_s(state, steps, state.immutable_s, count, waits_for_write=False)
        yield Case(
            setup=setup.name,
            interval_steps=steps,
            plain_s=count * blocking(state, steps, BlockingKnobs()).blocked_s,
            lazy_s=sum(lazy),
            steps_s=num_steps * state.step_s,
        )


def saving(setup: Setup) -> Saving:
    """A save of one device, and the step beside it."""
    device, devices = get_device(setup.word("device")), int(setup.number("num_devices"))
    parameters, tokens = (
        setup.number("num_parameters"),
        setup.number("sequence_tokens") * setup.number("num_global_batch"),
    )
    step_s = FLOPS * parameters * tokens / (devices * device.dense_flops_per_s["bf16"] * PEAK_FRAC)
    shard_bytes = STATE_BYTES * parameters / devices
    return Saving(
        shard_bytes=shard_bytes,
        num_devices=devices,
        devices_per_node=int(setup.number("num_devices_per_node")),
        forward_s=FORWARD_FRAC * step_s,
        backward_s=(1.0 - FORWARD_FRAC) * step_s,
        update_s=2.0 * shard_bytes / device.memory_bandwidth_bytes_per_s,
        device_to_host_bytes_per_s=setup.number("host_link_bytes_per_s"),
        storage_bytes_per_s=setup.number("file_system_bytes_per_s"),
        node_storage_bytes_per_s=setup.number("node_link_bytes_per_s"),
        host_memory_bytes_per_s=setup.number("host_memory_bytes_per_s"),
        host_buffer_bytes=setup.number("host_buffer_bytes"),
        node_link_bytes_per_s=setup.number("node_link_bytes_per_s"),
    )

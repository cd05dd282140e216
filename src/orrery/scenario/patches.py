"""A picture in patches over several devices: its settings, what cannot be, and what it gains over one device."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from orrery.base.errors import ScenarioError, shown
from orrery.execution.diffusion import Job
from orrery.execution.generation import Generated, generate
from orrery.execution.patched import PatchedWork, patched_work
from orrery.execution.patches import PATCHES
from orrery.models.diffusion import DiffusionModel
from orrery.scenario.schema import Scenario

NAMES = ("patch_context", "patch_read_frac", "patch_warmup_steps")


def read_patches(scenario: Scenario, model: DiffusionModel) -> dict[str, Any]:
    """The parts of a job that patches have; refused where a setting would change nothing."""
    given = {name: value for name in NAMES if (value := getattr(scenario, name)) is not None}
    if given and (scenario.patch_parallel or 1) == 1:
        raise ScenarioError(
            f"{', '.join(given)}: of patches, and there is one; write patch_parallel = 4, or leave out."
        )
    context = given.get("patch_context", "whole")
    if context not in PATCHES.words:
        raise ScenarioError(f"patch_context: got {shown(context)}; write one of {', '.join(PATCHES.words)}.")
    if "patch_read_frac" in given and context != "neighbour":
        raise ScenarioError(
            f"patch_read_frac: with patch_context = {context} attention reads all patches; write patch_context = "
            '"neighbour", or leave it out.'
        )
    if (scenario.patch_parallel or 1) > 1 and any(block.kind == "linear" for block in model.blocks):
        raise ScenarioError(
            f"patch_parallel: {model.name} has linear attention, which keeps no keys and values of a patch; write "
            "ulysses_degree or ring_degree."
        )
    return given


def check_patches(job: Job) -> None:
    """Refuse degrees that no picture of that size can be dealt out over."""
    if job.patches == 1:
        return
    if job.ulysses * job.ring > 1:
        raise ScenarioError(
            f"patch_parallel: got {job.patches} beside ulysses_degree {job.ulysses} and ring_degree {job.ring}; write "
            "either patches or a sequence degree."
        )
    rows = job.model.token_grid(job.height, job.width, job.num_frames)[0] // job.model.shrink
    if job.patches > rows:
        raise ScenarioError(
            f"patch_parallel: got {job.patches}; the smallest grid of {job.model.name} has {rows} rows at this size; "
            f"write at most {rows}."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchGain:
    """A job in patches beside the same on one device."""

    job: Job
    many: Generated

    @cached_property
    def one(self) -> Generated:
        """The same batch on one device."""
        return generate(replace(self.job, patches=1))

    @cached_property
    def work(self) -> PatchedWork:
        """One pass of each kind, and its exchange."""
        return patched_work(self.job)

    @property
    def speedup(self) -> float:
        """Times faster than one device, prompt and pixels included."""
        return self.one.latency_s / self.many.latency_s

    @property
    def denoise_speedup(self) -> float:
        """The same of the passes alone."""
        one, many = ([s for s in g.stages if s.name.startswith("denoise")] for g in (self.one, self.many))
        return sum(s.time_s for s in one) / sum(s.time_s for s in many)

    @property
    def read_frac(self) -> float:
        """Share of the picture that attention of a later pass reads."""
        return min(1.0, self.work.exchanged.read_ratio / self.job.patches)

    @property
    def attention_left_out_frac(self) -> float:
        """Share of one device's passes that is attention which no device computes: what is faster by doing less."""
        (one,) = (s for s in self.one.stages if s.name == "denoise")
        later = 1.0 - self.work.num_first / self.job.num_passes
        return float(one.parts.attention_s / one.parts.time_s) * (1.0 - self.read_frac) * later

    @property
    def most_denoise_speedup(self) -> float:
        """The most that so many devices gain on what is left to compute."""
        return self.job.patches / (1.0 - self.attention_left_out_frac)


def patches_json(job: Job, many: Generated) -> dict[str, Any]:
    """Exchanges, memory, omissions and gains of patches; SI units."""
    gain = PatchGain(job=job, many=many)
    return {
        "context": job.patch_context,
        "read_frac": gain.read_frac,
        "received_bytes_per_pass": gain.work.exchanged.received_bytes,
        "exchange_s_per_pass": gain.work.exchanged.exchange_s,
        "kept_bytes": gain.work.kept_bytes,
        "waiting_passes": gain.work.num_first,
        "speedup": gain.speedup,
        "denoise_speedup": gain.denoise_speedup,
        "most_denoise_speedup": gain.most_denoise_speedup,
        "attention_left_out_frac": gain.attention_left_out_frac,
    }

"""Layout of a training job over devices."""

from dataclasses import dataclass
from typing import Literal

Sharding = Literal["none", "zero1", "zero2", "zero3"]
"""State sharded over the data-parallel ranks: nothing, optimizer state, also gradients, also parameters (FSDP)."""

Recompute = Literal["none", "selective", "full"]
"""Recomputation in the backward pass: nothing, the core of attention (or the framework's selection), whole layers."""

ContextKind = Literal["ring", "all-to-all"]
"""Kind of context parallelism: keys and values go round a ring, or heads are dealt out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingLayout:
    """Degrees of parallelism and the choices that go with them; ``tp * cp * pp * dp`` devices in all.

    Ranks are numbered tensor first, then context, data, and pipeline last, so that neighbours in a node talk most.
    Experts are dealt over ``ep`` of the tp * cp * dp ranks of a stage, each cut ``etp`` ways; the rest are copies.
    """

    tp: int = 1
    cp: int = 1
    pp: int = 1
    dp: int = 1
    vp: int = 1  # model chunks of each pipeline rank (interleaving)
    first_stage_layers: int = 0  # layers of the first pipeline stage; 0 = as they come out
    last_stage_layers: int = 0  # and of the last; the other stages share the rest evenly
    ep: int = 1
    etp: int = 1  # ways in which one expert is cut
    micro_batch: int = 1  # sequences
    sharding: Sharding = "none"
    sharding_group: int = 0  # ranks that share one copy of what is sharded (HSDP); 0 = all of dp * cp
    secondary_group: int = 0  # ranks that keep a second, nearer copy of sharded parameters (ZeRO++ hpZ); 0 = none
    recompute: Recompute = "none"
    recompute_layers: int = 0  # full recomputation of only so many layers of each stage; 0 = of all
    recompute_modules: tuple[str, ...] = ()  # parts of each layer that are recomputed, by name (with selective)
    schedule: str = "1f1b"
    context_kind: ContextKind = "ring"
    is_sequence_parallel: bool = True  # norms and dropouts are cut too where tp > 1

    @property
    def num_devices(self) -> int:
        """Devices of the whole job."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def num_data_ranks(self) -> int:
        """Ranks that hold the same dense parameters: data and context."""
        return self.dp * self.cp

    @property
    def num_expert_copies(self) -> int:
        """Ranks that hold the same experts."""
        return max(1, self.tp * self.cp * self.dp // (self.ep * self.etp))

    def __str__(self) -> str:
        """Name: all that is not at its plainest, so that ``layout_name.read_name`` gives the layout again."""
        words = [f"tp{self.tp}"] if self.tp > 1 else []
        words += ["sp"] if self.tp > 1 and self.is_sequence_parallel else []
        words += [f"cp{self.cp}"] if self.cp > 1 else []
        words += [self.context_kind] if self.cp > 1 and self.context_kind != "ring" else []
        words += [f"{k}{v}" for k in ("pp", "vp") if (v := getattr(self, k)) > 1]
        words += [f"{k}{v}" for k in ("first", "last") if (v := getattr(self, f"{k}_stage_layers"))]
        words += [f"{k}{v}" for k in ("ep", "etp", "dp") if (v := getattr(self, k)) > 1]
        words += [f"mb{self.micro_batch}"]
        words += [self.sharding] if self.sharding != "none" else []
        words += [f"group{self.sharding_group}"] if self.sharding_group else []
        words += [f"near{self.secondary_group}"] if self.secondary_group else []
        part = f"-{self.recompute_layers}" if self.recompute_layers else ""
        kind = "+".join(self.recompute_modules) or self.recompute
        words += [f"recompute-{kind}{part}"] if self.recompute != "none" else []
        words += [self.schedule] if self.pp > 1 else []
        return " ".join(words)


def expert_cut(cuts_experts: bool, tp: int, ranks: int, ep: int) -> int:
    """The etp that a blank means: 1, or with a framework that cuts experts as all else the tp that ``ranks`` allow."""
    if not cuts_experts:
        return 1
    return max(etp for etp in range(1, tp + 1) if tp % etp == 0 and (ranks % (ep * etp) == 0 or etp == 1))

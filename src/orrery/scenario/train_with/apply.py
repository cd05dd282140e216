"""All techniques of a scenario in their order."""

from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.scenario.schema import Scenario
from orrery.scenario.train_with.changed import Changed
from orrery.scenario.train_with.expert_capacity import with_expert_capacity
from orrery.scenario.train_with.fabric import with_fabric
from orrery.scenario.train_with.local_updates import with_local_updates
from orrery.scenario.train_with.network_cards import with_network_cards
from orrery.scenario.train_with.partition import with_partition
from orrery.scenario.train_with.placement import with_placement
from orrery.scenario.train_with.recovery import with_recovery
from orrery.scenario.train_with.reshape import with_reshape
from orrery.scenario.train_with.sequences import with_sequences
from orrery.scenario.train_with.slices import with_slices
from orrery.scenario.train_with.stragglers import with_stragglers
from orrery.scenario.train_with.weight_sampling import with_weight_sampling
from orrery.training.ranks import Rank
from orrery.training.step import Steps

IN_ORDER = (
    with_fabric,
    with_slices,
    with_expert_capacity,
    with_local_updates,
    with_partition,
    with_sequences,
    with_network_cards,
    with_stragglers,
    with_recovery,
    with_weight_sampling,
    with_reshape,
    with_placement,
)

NO_RUNS = "intervals: those of the plain step; no measured run with this technique was compared"


def with_techniques(
    scenario: Scenario, job: TrainingJob, layout: TrainingLayout, steps: Steps, ranks: tuple[Rank, ...]
) -> Changed:
    """The step and its memory with everything that the scenario asks for; untouched where it asks for nothing."""
    plain = Changed(job=job, layout=layout, steps=steps, ranks=ranks)
    changed = plain
    for technique in IN_ORDER:
        changed = technique(scenario, changed)
    is_step_new = changed.steps is not plain.steps or changed.ranks is not plain.ranks
    return changed.saying(notes=(NO_RUNS,)) if is_step_new else changed

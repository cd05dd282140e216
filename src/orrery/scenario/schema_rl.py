"""The part of a scenario that is about RL post-training."""

from pydantic import field_validator

from orrery.base.errors import nearest
from orrery.rl.job import ALGORITHMS
from orrery.scenario.fields import BY_NAME
from orrery.scenario.kinds import Count, Number, Settings, Switch, Word

WORDS = {"algorithm": ALGORITHMS}
"""Settings that are one of a few words."""


class RlScenario(Settings, table=BY_NAME):
    """Settings of RL post-training beside a training job; a blank takes the documented default, with a note."""

    rl: Switch = None
    rl_placement: Word = None
    algorithm: Word = None
    prompts_per_step: Count = None
    generations_per_prompt: Count = None
    max_output_tokens: Count = None
    generation_devices: Count = None
    generation_tp: Count = None
    generation_pp: Count = None
    generation_ep: Count = None
    generation_weights: Word = None
    colocated: Switch = None
    max_staleness: Count = None
    updates_in_flight: Switch = None
    partial_rollout: Switch = None
    tail_batching: Switch = None
    oversampling: Number = None
    kept_groups: Number = None
    reference: Switch = None
    old_logprobs: Switch = None
    critic_model: Word = None
    reward_model: Word = None
    reference_model: Word = None
    reward_s: Number = None
    reward_workers: Count = None
    ppo_epochs: Count = None
    sequence_packing: Switch = None
    offload_training: Switch = None

    @field_validator("algorithm")
    @classmethod
    def _a_known_algorithm(cls, value: str | None) -> str | None:
        known = WORDS["algorithm"]
        if value is not None and value not in known:
            near = nearest(value, known, 1)
            raise ValueError(f"write {near[0]!r}" if near else f"write one of {', '.join(known)}")
        return value

"""Answers that take no technique which acts on the step of one layout."""

from orrery.base.errors import ScenarioError
from orrery.scenario.fields_training_techniques import TECHNIQUE_SETTINGS
from orrery.scenario.schema import Scenario

ANYWHERE = frozenset(
    {
        "node_link_bytes_per_s",
        "sites",
        "site_link_bytes_per_s",
        "detection",
        "diagnosis_s",
        "report_s",
        "failure_shape",
        "checkpoint_buffer_bytes",
        "pack_bytes_per_s",
        "checkpoint_file_s",
        "slow_mtbf_s",
        "slow_ratio",
        "slow_notice_s",
        "repair_s",
        "spare_nodes",
        "parity_nodes",
        "parity_group_nodes",
    }
)
"""Facts of the machines and of their failures, that every kind of answer takes."""


def refuse_techniques(scenario: Scenario, kind: str, without: str, but: str = "") -> None:
    """Refuse techniques that act on one layout's step in an answer of another kind, ``but`` one."""
    for setting in TECHNIQUE_SETTINGS:
        if setting.name not in (*ANYWHERE, but) and getattr(scenario, setting.name) is not None:
            raise ScenarioError(
                f"{setting.name}: is of one layout's step, and not computed {kind}; leave {without} out, or "
                f"{setting.name}."
            )

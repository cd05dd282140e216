"""C4: faults found by the rhythm of collectives or by timeouts, and flows whose paths are planned or hashed."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery_papers.shared.trained_by import settings_of, trained

SAVES = "saves are as far apart in both cases here, so the work since the last one is lost just as before"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Both halves: what errors take, and what collisions do."""
    before, after = (overhead_frac(paper.setups[name]) for name in ("by-hand", "by-rhythm"))
    yield Prediction(
        claim="error-overhead",
        predicted=before - after,
        because="points of run time that errors no longer take",
        differs=f"diagnosis by people and numbers of faults are assumed; {SAVES}",
    )
    yield Prediction(
        claim="error-overhead-before",
        predicted=before,
        because="a timeout, people who look for the node, a restart, and the work since the last save",
        differs="rates, save interval and times of diagnosis are assumed",
    )
    yield Prediction(
        claim="error-overhead-after",
        predicted=after,
        because="a few steps until it shows, the scheduler sets the node aside, a restart",
        differs=f"{SAVES}; and the paper's later months had fewer faults and more frequent saves",
    )
    claims = {claim.id: claim.setup for claim in paper.claims}
    moderate, large = (by_routing(claims[name]) for name in ("runtime", "gap-512"))
    yield Prediction(
        claim="runtime",
        predicted=moderate["ecmp"] / moderate["planned"] - 1.0,
        because="the fullest of the links that hashed flows meet, against one flow a link",
        differs="layout, batch and fabric are assumed; what shows of an exchange depends on all of them",
    )
    yield Prediction(
        claim="gap-512",
        predicted=1.0 - large["planned"] / large["ecmp"],
        because="the same on all devices, each with a quarter of the work",
        differs="layout, batch and fabric are assumed",
    )


def overhead_frac(s: Setup) -> float:
    """``orrery train --detection``: the share of a run's time that failures take, checkpoints themselves left out."""
    way = "collective" if s.number("report_s") else "timeout"
    fails_s = s.number("num_devices") * s.number("run_s") / s.number("num_failures")
    given: dict[str, Any] = {
        "train_tokens": s.number("num_training_tokens"),
        "device_mtbf_s": fails_s,
        "checkpoint_interval_s": s.number("save_interval_s"),
        "detection": way,
        "restart_s": s.number("restart_s"),
        "recompute": "full",
        "sharding": "zero1",
    }
    if way == "collective":  # the node is known, and the scheduler sets it aside before the restart
        given |= {"report_s": s.number("report_s"), "restart_s": s.number("restart_s") + s.number("diagnosis_s")}
    else:
        given |= {"detection_s": s.number("timeout_s"), "diagnosis_s": s.number("diagnosis_s")}
    rows = trained(**settings_of(s, **given)).table("detection")
    found = next(row for row in rows if row["detection"] == way)
    return found["lost_frac"] + found["recovery_frac"]


def by_routing(s: Setup) -> Mapping[str, float]:
    """``orrery train --fabric fat-tree``: seconds of a step by the way in which flows are dealt to the spines."""
    nodes = int(s.number("num_devices") / s.number("num_devices_per_node"))
    below = min(nodes, int(s.number("num_hosts_per_leaf")))
    found = trained(
        **settings_of(
            s,
            recompute="full",
            sharding="zero1",
            fabric="fat-tree",
            leaves=nodes // below,
            hosts_per_leaf=below,
            planes=int(s.number("num_planes")),
        )
    )
    return {row["routing"]: row["step_s"] for row in found.table("fabric")}

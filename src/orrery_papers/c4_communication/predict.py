"""C4: faults found by the rhythm of collectives or by timeouts, and flows whose paths are planned or hashed."""

from collections.abc import Iterator

from orrery.evidence.paper_file import Paper, Setup
from orrery.evidence.prediction import Prediction
from orrery.training.faults.detection import FaultKind, HeartbeatDetection, Timeout
from orrery.training.faults.error_cost import ErrorCost, Job, error_cost
from orrery.training.faults.paths import Contention, contention, job_gain_ratio, ring_flows

SAVES = "saves are as far apart in both cases here, so the work since the last one is lost just as before"


def predict(paper: Paper) -> Iterator[Prediction]:
    """Both halves: what errors take, and what collisions do."""
    before = cost(paper.setups["by-hand"]).overhead_frac
    after = cost(paper.setups["by-rhythm"]).overhead_frac
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
    moderate = next(claim for claim in paper.claims if claim.id == "runtime").setup
    yield Prediction(
        claim="runtime",
        predicted=gain(paper.setups["network"], moderate) - 1.0,
        because="the fullest of the links that hashed flows meet, against one flow a link",
        differs="a ring that crosses leaves in every hop, hashed flow by flow, meets more collisions than one whose "
        "neighbours share a leaf or whose flows are cut into several connections; and the share of communication is "
        "that of the job on four times as many devices, which have less to compute each where the batch is the same",
    )


def cost(s: Setup) -> ErrorCost:
    """A job of thousands of devices whose faults all stop it."""
    devices = int(s.number("num_devices"))
    kind = FaultKind(name="stop", device_mtbf_s=devices * s.number("run_s") / s.number("num_failures"))
    job = Job(num_devices=devices, interval_s=s.number("save_interval_s"), restart_s=s.number("restart_s"))
    detector = (
        HeartbeatDetection(
            step_s=s.number("step_s"),
            num_ranks=devices,
            report_s=s.number("report_s"),
            diagnosis_s=s.number("diagnosis_s"),
        )
        if s.number("report_s")
        else Timeout(timeout_s=s.number("timeout_s"), slow_detection_s=0.0, diagnosis_s=s.number("diagnosis_s"))
    )
    return error_cost(job, [kind], detector)


def gain(large: Setup, moderate: Setup) -> float:
    """The communication's share follows from the stated gap of the large job, and is taken to the moderate one.

    A gap g means that hashed steps are 1 / (1 - g) as long: with the share x of planned steps, g / (1 - g) is
    x (hashed - 1).
    """
    gap = large.number("throughput_gap_frac")
    planned_share = gap / (1.0 - gap) / (collisions(large).gain_ratio - 1.0)
    slower = collisions(moderate).gain_ratio
    hashed_share = planned_share * slower / (1.0 - planned_share + planned_share * slower)
    return job_gain_ratio(hashed_share, slower)


def collisions(s: Setup) -> Contention:
    """Rings over all nodes, one a plane, that cross between two leaves in every hop."""
    nodes = int(s.number("num_devices") / s.number("num_devices_per_node"))
    flows = ring_flows([node % 2 for node in range(nodes)])
    return contention(flows, nodes // 2, num_planes=int(s.number("num_planes")), num_draws=400)

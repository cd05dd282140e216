"""Rows of runs whose prompts and answers have workers of their own, as pools of a service.

Columns ``prefill_*`` and ``decode_*`` describe a worker of each kind: ``tp``, ``dp``, ``ep``, ``etp``, ``batch_size``
(of one attention rank); ``workers`` counts them and ``devices`` is what they take together. Workers are counted apart,
so ``dp`` are ranks of one worker, which share its experts: without ``ep`` each expert is cut over all of them.
"""

from orrery.base.errors import ScenarioError
from orrery.catalog.published_pools import ASKED, most_decoding
from orrery.catalog.scripts import script_setting
from orrery.evidence.row import Row
from orrery.evidence.serving_row import has_pools, longest_tokens, read_row
from orrery.execution.layout import Deployment
from orrery.execution.speculation import of_head
from orrery.serving.simulation.service import Pool, Role, Service
from orrery.serving.workload import Workload

ROLES: dict[str, Role] = {"prefill": "prompts", "decode": "answers"}
SIZES = ("tp", "dp", "ep", "etp")


def read_service(row: Row) -> tuple[Service, Workload]:
    """The service and its traffic. Raises an OrreryError whose text is the reason to decline."""
    if not has_pools(row):
        deployment, workload = read_row(row)
        return Service(pools=(Pool(deployment=deployment),), speculation=of_head(deployment)), workload
    if row.word("mode") == "closed" and not row.word("concurrency"):
        raise ScenarioError("concurrency is blank: how many requests the pools serve at once is not known")
    pools = [_pool(row, word) for word in ROLES]
    devices = sum(pool.replicas * pool.deployment.layout.num_devices for pool, _ in pools)
    node = min(pool.deployment.cluster.devices_per_node for pool, _ in pools)
    return Service(pools=tuple(pool for pool, _ in pools), is_same_node=devices <= node), pools[-1][1]


def _pool(row: Row, word: str) -> tuple[Pool, Workload]:
    """The workers of one phase: the row with their sizes in place of its own."""
    workers = round(row.needed(f"{word}_workers"))
    own = Row(cells=_cells(row, word, workers), assumed=row.assumed)
    deployment, workload = read_row(own)
    if word == "prefill" and not row.word("max_num_batched_tokens"):
        own.cells = {**own.cells, **_prompt_limits(row, deployment, workload)}
        deployment, workload = read_row(Row(cells=own.cells))
    return Pool(deployment=deployment, replicas=workers, role=ROLES[word]), workload


def _cells(row: Row, word: str, workers: int) -> dict[str, str]:
    sizes = {size: row.word(f"{word}_{size}") for size in SIZES}
    devices = row.count(f"{word}_devices")
    tp, dp, ep = (row.count(f"{word}_{size}") for size in ("tp", "dp", "ep"))
    if dp > 1 and ep <= 1 and not sizes["etp"]:
        sizes["etp"] = str(devices // workers or max(tp, 1) * dp)
    if devices % workers:
        raise ScenarioError(f"{word}_devices is not a multiple of {word}_workers")
    cells = {**row.cells, **sizes, "num_devices": str(devices // workers) if devices else "", "pp": "1"}
    cells |= {"prefill_workers": "", "decode_workers": "", "max_num_seqs": row.word(f"{word}_batch_size")}
    if word == "decode" and (known := _most_decoding(row)):
        cells["max_num_seqs"] = known
    return cells


def _most_decoding(row: Row) -> str:
    """The limit that the run's script set; ``decode_batch_size`` is what its clients fill of it, or more. Blank where
    no script is known."""
    sizes = {name: row.count(name) for name in ASKED if name.startswith(("prefill_", "decode_"))}
    lengths = {name: row.count(f"nominal_{name}") for name in ("input_tokens", "output_tokens")}
    words = {"engine": row.word("engine"), "weights": row.word("weights_format"), "device": row.word("device")}
    known = most_decoding(row.word("model"), row.count("concurrency"), {**sizes, **lengths, **words})
    return row.default("max_num_seqs", str(known.value)) if known else ""


def _prompt_limits(row: Row, deployment: Deployment, workload: Workload) -> dict[str, str]:
    """Limits of a step of prompts: whole prompts, as many as the stated batch; or the tokens that its publisher's
    scripts allow, since some published tables write a batch of one whatever the script says."""
    known = script_setting(
        "max_num_prompt_tokens",
        engine=deployment.engine.name,
        version=deployment.engine.version,
        mode=workload.mode,
        generation=deployment.cluster.device.generation,
        ranks=deployment.layout.dp,
        concurrency=workload.concurrency,
        input_tokens=workload.input_tokens,
        published=row.word("source"),
        model=row.word("model"),
    )
    if known is None:
        return {"max_num_batched_tokens": str(max(1, row.count("prefill_batch_size")) * longest_tokens(workload))}
    tokens = row.default("max_num_batched_tokens of prompts", f"{known.value}")
    return {"max_num_batched_tokens": tokens, "max_num_seqs": str(max(1, int(int(tokens) // workload.input_tokens)))}

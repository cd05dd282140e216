"""Copy the published closed-loop runs that the landing page draws: from the measured tables to landing_runs.csv.

    ORRERY_DATA=FOLDER tools/published_runs.py

Kept are runs of the page's models, devices, engines and traffic with a TTFT and a TPOT; columns are those of the
tables, so that a row of one pool can be predicted as it stands.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from landing_runs import FILE, traffic_of
from orrery.base.errors import OrreryError
from orrery.catalog.devices import get_device
from orrery.catalog.models import get_model
from orrery.evidence.row import Row
from orrery.evidence.tables import read_table, table_text
from orrery.web.landing.choices import DEVICES, ENGINES, MODELS

COLUMNS = (
    "model_key",
    "source",
    "run",
    "measured_date",
    "model",
    "device",
    "num_devices",
    "tp",
    "pp",
    "dp",
    "ep",
    "weights_format",
    "engine",
    "engine_version",
    "mode",
    "input_tokens",
    "output_tokens",
    "input_tokens_std",
    "output_tokens_std",
    "concurrency",
    "ttft_s",
    "tpot_s",
    "prefill_workers",
    "prefill_devices",
    "decode_workers",
    "decode_devices",
)
SAME = {"DeepSeek-R1-0528": "deepseek-r1"}
"""Checkpoints of the same architecture and formats as a model of the page."""


def kept(folder: Path) -> Iterator[dict[str, str]]:
    """The rows, in the tables' order."""
    names = {get_model(m.key).name: m.key for m in MODELS}
    devices = {d.key for d in DEVICES}
    for path in sorted(folder.glob("*.csv")):
        table = read_table(path)
        for number in range(len(table)):
            cells = {c: v[number] for c, v in table.columns.items()}
            row = Row(cells)
            if cells.get("mode") != "closed" or not (cells.get("ttft_s") and cells.get("tpot_s")):
                continue
            model = cells["model"].rpartition("/")[2]
            try:
                key = SAME.get(model) or names.get(get_model(cells["model"]).name)
                device = get_device(cells["device"]).name
            except OrreryError:
                continue
            if key and device in devices and cells["engine"] in ENGINES and traffic_of(row):
                yield {c: cells.get(c, "") for c in COLUMNS} | {"model_key": key, "device": device}


def main() -> None:
    """Write the file."""
    if "ORRERY_DATA" not in os.environ:
        sys.exit("ORRERY_DATA: name the folder of the measured tables.")
    rows = list(kept(Path(os.environ["ORRERY_DATA"]) / "serving"))
    FILE.write_text(table_text(rows, COLUMNS), encoding="utf-8")
    print(f"{len(rows)} runs, {FILE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

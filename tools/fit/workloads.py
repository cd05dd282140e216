"""Score published runs that nothing was fitted to: ``python tools/fit/workloads.py``.

Image networks, embeddings and recommendation of src/orrery/evidence/workloads.csv are predicted as they are. The ratios
of image networks are the interval of their answers; the errors of all are kept, and the pages tell them.
"""

import math
from typing import Any

import numpy as np
import tomli_w
from accuracy_tables import write_tables
from diffusion import cell
from intervals import QUANTILES
from numpy.typing import NDArray

from orrery.base.files import write_atomically
from orrery.catalog.workload_spreads import FILE
from orrery.evidence.accuracy import read_tables
from orrery.evidence.check import check_table
from orrery.evidence.tables import read_table
from orrery.evidence.workload_rows import PUBLISHED

KEY = "workloads, nothing fitted"
METRICS = ("images_per_s", "embeddings_per_s", "samples_per_s")
INTERVAL = "images"


def main() -> None:
    """Score, and write the interval and the errors."""
    checked = check_table(read_table(PUBLISHED))
    errors: dict[str, dict[str, dict[str, Any]]] = {}
    for metric in METRICS:
        measured, predicted = checked.measured[metric], checked.answers.predicted[metric]
        told = np.isfinite(measured)
        assert np.isfinite(predicted[told]).all(), metric
        errors[metric] = {"all": _entry(measured[told] / predicted[told])}
        for column in ("engine", "model"):
            words = checked.table.words(column)
            for word in sorted(set(words[told].tolist()) - {""}):
                rows = told & (words == word)
                errors[metric][f"{column}: {word}"] = _entry(measured[rows] / predicted[rows])
    images = checked.measured["images_per_s"]
    told = np.isfinite(images)
    slower = np.log(checked.answers.predicted["images_per_s"][told] / images[told])
    found: dict[str, Any] = {name: round(math.exp(np.quantile(slower, q)), 4) for name, q in QUANTILES.items()}
    found["because"] = f"{int(told.sum())} published runs of image networks, none of which was fitted"
    write_atomically(FILE, f"# made by: python tools/fit/workloads.py\n{tomli_w.dumps({INTERVAL: found})}")
    write_tables({**read_tables(), KEY: errors})
    for metric, groups in errors.items():
        for group, e in groups.items():
            print(f"{metric:18s} {group:30s} {e}")


def _entry(ratio: NDArray[np.float64]) -> dict[str, Any]:
    return {"rows": int(ratio.size), **cell(ratio)}


if __name__ == "__main__":
    main()

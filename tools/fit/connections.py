"""Fit hyper-connections (mHC) as engines run them and write ``facts/calibrations/hyper_connections.toml``.

    python tools/fit/connections.py --data ../shared/data

A layer has two of them, before and behind attention and before and behind its feed-forward half; a row times both.
``mhc_pre`` turns n residual streams into a layer's input: they are read for their norm and the mixing weights, read
again for their weighted sum, which is written. ``mhc_post`` reads the half's output and the streams and writes streams.
Either moves 2 n + 1 times the hidden size a token. A number of tokens and a width stand on one side, the same for all
devices and engines.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
from elementwise import MIN_ROWS, Rows, entry, fit, on, pooled, score
from kernel_scores import Score, print_scores, quantiles, write_calibrations

from orrery.base.units import percent
from orrery.catalog.devices import get_device
from orrery.evidence.split import CALIBRATE, FIT, TEST
from orrery.evidence.split import side as side_of
from orrery.kernels.elementwise.rule import machine_vector

SYSTEMS = {
    "b200_sxm": "b200",
    "gb200": "gb200",
    "gb300": "gb300",
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-server",
}
ENGINES = {"VLLM": "vllm", "SGLang": "sglang", "TRTLLM": "tensorrt-llm"}
SITES = 2  # a row's latency is of both of a layer
TORCH = "sglang_torch_mhc_pre"  # eager PyTorch where no kernel was built: a dozen passes, not this law


def read(folder: Path) -> Iterator[tuple[str, Rows]]:
    """The rows by engine, kind and device; kernels of one kind that take turns by size are one."""
    path = folder / "kernels_aiconfigurator/mhc_module_perf__all.parquet"
    table = duckdb.execute(f"select * from '{path}' where kernel_source != '{TORCH}'").df()
    table["kind"] = np.where(table.kernel_source.str.contains("_pre"), "mhc_pre", "mhc_post")
    for (framework, kind, system), t in table.groupby(["framework", "kind", "system"]):
        device, tokens = get_device(SYSTEMS[system]), t.num_tokens.to_numpy(np.float64)
        width = (2 * t.hc_mult + 1) * t.hidden_size
        side = [side_of([kind, str(int(n)), str(h)]) for n, h in zip(tokens, t.hidden_size.tolist(), strict=True)]
        yield (
            ENGINES[framework],
            Rows(
                device=device.name,
                generation=device.generation,
                kind=str(kind),
                source="aiconfigurator",
                tokens=tokens,
                width=width.to_numpy(np.float64),
                machine=machine_vector(device),
                time_s=t.latency.to_numpy(np.float64) * 1e-3 / SITES,
                side=np.array(side),
            ),
        )


def entries_of(engine: str, parts: list[Rows]) -> tuple[list[dict[str, object]], list[Score]]:
    """Entries of one kind of one engine: its devices, their generations with a device left out, everybody."""
    owned = {"engine": engine}
    out: list[dict[str, object]] = []
    scores: list[Score] = []
    own = [fit([on(p, FIT)]) for p in parts]
    held = [on(p, CALIBRATE) for p in parts]
    ratios = [h.time_s / h.predict(c) for h, c in zip(held, own, strict=True)]
    for p, c, mine in zip(parts, own, ratios, strict=True):
        ratio = mine if mine.size >= MIN_ROWS else np.concatenate(ratios)
        numbers = [int((p.side == s).sum()) for s in (FIT, CALIBRATE, TEST)]
        at = "{} of {}: {} rows fitted, {} for the interval, {} tested".format(p.kind, engine, *numbers)
        out.append(entry(("device", p.device), [p], c, quantiles(ratio), at) | owned)
        scores.append(score(p, c))
    more, far = pooled(parts, f"{parts[0].kind} of {engine} on")
    out += [one | owned for one in more]
    print(f"{parts[0].kind} of {engine}, a generation left out: median {percent(np.median(np.abs(1 / far - 1)), 1)}")
    return out, scores


def main() -> None:
    """Fit everything, print the errors, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root = Path(__file__).resolve().parents[2]
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data")
    known = list(read(parser.parse_args().data))
    entries: list[dict[str, object]] = []
    scores: list[Score] = []
    for engine, kind in sorted({(e, p.kind) for e, p in known}):
        more, found = entries_of(engine, [p for e, p in known if (e, p.kind) == (engine, kind)])
        entries, scores = entries + more, scores + found
    print_scores(scores)
    target = root / "src/orrery/catalog/facts/calibrations/hyper_connections.toml"
    write_calibrations(target, "python tools/fit/connections.py", entries)


if __name__ == "__main__":
    main()

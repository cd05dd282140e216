"""A check in a process of its own: what it reads may take too long or too much, and must not take the server along."""

import asyncio
import json
import os
import sys
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.web.uploads import check
from orrery.web.uploads.check import Found

MAX_WAIT_S = 60.0
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


async def checked_apart(file: Path, uploads: Path, wait_s: float = MAX_WAIT_S) -> Found:
    """Findings of ``check``; ScenarioError where it finds nothing, or not in time."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        check.__name__,
        str(file),
        str(uploads),
        env={**os.environ, **ONE_THREAD},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), wait_s)
    except TimeoutError:
        raise ScenarioError(f"{file.name}: reading it takes too long; no usable file of its kind does.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode or not out:
        raise ScenarioError(f"{file.name}: reading it takes more time or memory than a file of its kind may.")
    found: Found = json.loads(out)
    if "error" in found:
        raise ScenarioError(found["error"])
    return found

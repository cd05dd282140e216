"""Terminal view of the cost of long contexts."""

from orrery.base.units import text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.long_contexts import LongContextAnswer


def print_long_contexts(answer: LongContextAnswer) -> None:
    """A row for each length, format and way of keeping the cache."""
    out = console()
    out.print(f"[bold]{answer.model}[/] on {answer.device} ({answer.layout})", highlight=False)
    table = Sheet("context", "cache", "kept", "bytes", "at once", "prompt", "decode step", "alone", "change of users")
    for row in answer.rows:
        c = row.costs
        table.add_row(
            f"{c.context_tokens:,}",
            row.kv,
            row.compression,
            text(c.kv_bytes, "bytes"),
            str(c.concurrency),
            text(c.prefill_s, "s"),
            text(c.decode_step_s, "s"),
            text(c.one_decode_step_s, "s"),
            text(c.context_switch_s, "s"),
        )
    out.print(table)

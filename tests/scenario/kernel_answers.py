"""What `orrery kernel` answers, by variant, for tests that compare variants."""

import orrery


def rows(**message):
    return {(row.variant, row.format): row for row in orrery.kernel(**message).rows}


def times(**message):
    return {row.variant: row.time_s for row in orrery.kernel(**message).rows}

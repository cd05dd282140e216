"""Simulates the history of accelerations that the selector of ``orrery.predictors.acceleration`` learns from.

python tools/fit/accelerations.py        # a minute or two; the same file on every machine
"""

from orrery.predictors.acceleration.history import drawn_tasks, simulated
from orrery.predictors.acceleration.stored import FILE, NUM_TASKS, SEED, write_history


def main() -> None:
    """Draw, simulate, write."""
    write_history(simulated(drawn_tasks(NUM_TASKS, SEED), SEED), FILE)
    print(f"{NUM_TASKS} tasks in {FILE}")


if __name__ == "__main__":
    main()

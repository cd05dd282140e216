"""Papers' claims, run again: one file a paper builds its set-ups, serves them, and says what comes out."""

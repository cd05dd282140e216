"""Constants that fit a user's own runs: logs are read, a few constants are corrected, and the correction is checked."""

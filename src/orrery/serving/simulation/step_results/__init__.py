"""Results of a finished step: tokens, hand-overs, ends, and the record of it all."""

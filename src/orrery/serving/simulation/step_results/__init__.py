"""What a step has brought when it ends: tokens, hand-overs, ends, and the record of it all."""

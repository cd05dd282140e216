"""One input through weak devices: weights streamed from a drive, cuts at a radio link, answers that exit early."""

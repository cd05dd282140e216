"""Ways to run a collective: one file each, found because it is here."""

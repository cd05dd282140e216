"""Element formats with a name of their own, one short file each; ``orrery.numerics.names`` spells out all others."""

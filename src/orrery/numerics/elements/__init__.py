"""Element formats with a name of their own, one short file each; all others are spelled out (``orrery.numerics.names``)."""

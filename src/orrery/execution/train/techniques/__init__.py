"""What collectives of a layer run beside, one file each."""

"""When data-parallel replicas agree, one file each."""

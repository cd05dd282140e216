"""Ways to partition training state over levels of links, one file each."""

"""The libraries that can be asked to do the work, one file each."""

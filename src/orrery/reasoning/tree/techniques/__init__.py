"""Which branches of a search live on, and in how many continuations: one file each, found because it exists."""

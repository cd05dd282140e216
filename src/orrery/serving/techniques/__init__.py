"""How batches are formed, who waits and which replica serves: one file a technique, found because it exists."""

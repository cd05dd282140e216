"""One file a cause: what it changes in the deployment or the traffic, with one severity. Found because it exists."""

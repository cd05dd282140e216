"""cost(collective, group): how long a group of devices takes to exchange bytes."""

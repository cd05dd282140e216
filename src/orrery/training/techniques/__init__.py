"""Ways to order, shard, save and restart training: one file each, found because it is here."""

"""One step of RL post-training: rollouts by a serving engine, then the policy's passes and updates, in turn or apart."""

"""One step of RL post-training: rollouts by a serving engine, and the policy's passes and updates, in turn or apart."""

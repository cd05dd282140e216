"""Traffic to latency step by step: the simulator of engines, replicas and pools."""

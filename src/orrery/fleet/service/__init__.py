"""A whole service over days: replicas that start, stop and fail while requests come."""

"""Lost pipeline stages: rolling back, computing them twice, or making them from their neighbours."""

"""Parts shared by the predictions of several papers: set-ups as deployments and jobs, layers, passes, machines."""

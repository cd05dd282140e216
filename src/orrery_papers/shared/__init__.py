"""What the predictions of several papers share: set-ups as deployments and jobs, layers, passes, machines."""

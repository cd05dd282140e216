"""The public part as a static site: the landing charts, devices, models, the scorecard and papers."""

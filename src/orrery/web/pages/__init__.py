"""Pages; each file has ``ROUTES``, and ``MENU`` where the bar at the top leads to it."""

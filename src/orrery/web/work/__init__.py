"""Work that takes longer than a page: done in other processes, kept in a file, watched by any page."""

from orrery.web.work.run_service import Work as Work

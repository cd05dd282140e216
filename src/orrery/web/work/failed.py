"""Messages for work that failed."""

from orrery.base.errors import OrreryError


class WorkFailed(OrreryError):
    """A process that worked on a question ended, or took too long; the question may be asked again."""

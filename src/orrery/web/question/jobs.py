"""The jobs by name, each as a link to the form that answers it, filled with an example."""

from dataclasses import dataclass

from orrery.scenario.jobs import JOBS
from orrery.web.address import query_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLink:
    """A job as the first page shows it."""

    question: str
    answer: str
    href: str
    command: str
    page: str


def jobs() -> tuple[JobLink, ...]:
    """Every job, in the order of the command line's help."""
    return tuple(
        JobLink(
            question=job.question,
            answer=job.answer,
            href=f"{job.path}?{query_of(job.example)}" if job.example else job.path,
            command=job.command,
            page=job.page,
        )
        for job in JOBS
    )

"""A simulated run as a file: a table of its requests, its answer, a report to look at, or a trace of its steps."""

from orrery.cli.simulate_report.files import SUFFIXES, check_suffix, write_result
from orrery.cli.simulate_report.page import report_html

__all__ = ["SUFFIXES", "check_suffix", "report_html", "write_result"]

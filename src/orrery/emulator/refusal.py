"""Requests that are not served, said in the form of vLLM's errors."""

from typing import Any

KINDS = {
    400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError", 405: "MethodNotAllowedError",
    408: "RequestTimeoutError", 413: "RequestTooLargeError", 415: "UnsupportedMediaTypeError",
    429: "TooManyRequestsError", 500: "InternalServerError", 503: "ServiceUnavailableError",
}  # fmt: skip
"""The word for each status."""


class Refusal(Exception):
    """Why a request gets no answer, and what to write instead."""

    def __init__(
        self, status: int, message: str, param: str | None = None, headers: tuple[tuple[bytes, bytes], ...] = ()
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.headers = status, message, param, headers

    def to_json(self) -> dict[str, Any]:
        """``{"error": {"message", "type", "param", "code"}}``."""
        return {
            "error": {"message": self.message, "type": KINDS[self.status], "param": self.param, "code": self.status}
        }


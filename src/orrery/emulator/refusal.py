"""Requests that are not served, said in the form of vLLM's errors."""

from typing import Any

KINDS = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    405: "MethodNotAllowedError",
    408: "RequestTimeoutError",
    409: "ConflictError",
    413: "RequestTooLargeError",
    415: "UnsupportedMediaTypeError",
    421: "MisdirectedRequestError",
    422: "UnprocessableEntityError",
    429: "TooManyRequestsError",
    500: "InternalServerError",
    503: "ServiceUnavailableError",
}
"""The word for each status."""


ANTHROPIC_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


KUBERNETES_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    421: "BadRequest",
    422: "Invalid",
    503: "ServiceUnavailable",
}


class RequestError(Exception):
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

    def to_anthropic(self) -> dict[str, Any]:
        """``{"type": "error", "error": {"type", "message"}}``."""
        kind = ANTHROPIC_KINDS.get(self.status, "api_error" if self.status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": self.message}}

    def to_kubernetes(self) -> dict[str, Any]:
        """A Status, as the API server of Kubernetes says it."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": KUBERNETES_REASONS.get(self.status, "InternalError"),
            "code": self.status,
        }

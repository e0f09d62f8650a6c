"""A client of the page that needs no event loop."""

from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def get(url: str, headers: dict[str, str] | None = None) -> tuple[int, Any, bytes]:
    try:
        with urlopen(Request(url, headers=headers or {}), timeout=20) as answer:
            return answer.status, answer.headers, answer.read()
    except HTTPError as problem:
        return problem.code, problem.headers, problem.read()

"""The refusals of the API server, with its codes and messages."""

from collections.abc import Iterable

from bayplan.api.object_meta import resource_of
from bayplan.objects.keys import ObjectKey
from bayplan.ports import ApiError, ConflictError, NotFoundError


class AlreadyExistsError(ApiError):
    """409: an object of this name exists."""

    def __init__(self, key: ObjectKey) -> None:
        super().__init__(409, "AlreadyExists", f"{named(key)} already exists")


class InvalidError(ApiError):
    """422: the object is invalid; the message says where."""

    def __init__(self, key: ObjectKey, message: str) -> None:
        group = key.kind.partition(" ")[0].rpartition("/")[0]
        kind = key.kind.rpartition(" ")[2] + (f".{group}" if group else "")
        super().__init__(422, "Invalid", f'{kind} "{key.name}" is invalid: {message}')


class ForbiddenError(ApiError):
    """403: an admission plugin refused the object."""

    def __init__(self, key: ObjectKey, message: str) -> None:
        super().__init__(403, "Forbidden", f"{named(key)} is forbidden: {message}")


class TooManyRequestsError(ApiError):
    """429: try again later; ``cause`` says why."""

    def __init__(self, message: str, cause: str) -> None:
        super().__init__(429, "TooManyRequests", message)
        self.cause = cause


class OtherUidError(ConflictError):
    """409: the object of this name has another uid than the write names."""


def aggregated(texts: Iterable[str]) -> str:
    """Several messages as one, each once: a single one as it is, several as a list."""
    listed = list(dict.fromkeys(texts))
    return listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"


def named(key: ObjectKey) -> str:
    """`pods "web"`, `deployments.apps "web"`."""
    group = key.kind.partition(" ")[0].rpartition("/")[0]
    resource = resource_of(key.kind)
    return f'{resource}.{group} "{key.name}"' if group else f'{resource} "{key.name}"'


def no_such_object(key: ObjectKey) -> NotFoundError:
    return NotFoundError(f"{named(key)} not found")


def modified(key: ObjectKey) -> ConflictError:
    """The object has changed since the version that the write names."""
    return ConflictError(
        f"Operation cannot be fulfilled on {named(key)}: the object has been modified; "
        f"please apply your changes to the latest version and try again"
    )


def other_uid(key: ObjectKey, expected: str, own: str) -> OtherUidError:
    """The object of this name has another uid than the write names."""
    return OtherUidError(
        f"Operation cannot be fulfilled on {named(key)}: Precondition failed: "
        f"UID in precondition: {expected}, UID in object meta: {own}"
    )


def not_bindable(key: ObjectKey, why: str) -> ConflictError:
    return ConflictError(
        f'Operation cannot be fulfilled on pods/binding "{key.name}": pod {key.name} {why}'
    )

"""Recent: groups that something happened to a moment ago."""

from typing import final

from bayplan.api.pod_groups import GroupKey


@final
class Recent:
    """Remembers each group for the same time. Noting it again meanwhile does not extend that."""

    def __init__(self, seconds: float) -> None:
        """0: nothing is remembered."""
        self.seconds = seconds
        #: In the order in which they are forgotten.
        self._until_seconds: dict[GroupKey, float] = {}

    def note(self, group: GroupKey, now_seconds: float) -> None:
        self._forget_until(now_seconds)
        if self.seconds > 0:
            self._until_seconds.setdefault(group, now_seconds + self.seconds)

    def has(self, group: GroupKey, now_seconds: float) -> bool:
        until_seconds = self._until_seconds.get(group)
        return until_seconds is not None and now_seconds < until_seconds

    def until_seconds(self, group: GroupKey) -> float:
        """When it is forgotten; raises KeyError for one that is not remembered."""
        return self._until_seconds[group]

    def drop(self, group: GroupKey) -> None:
        self._until_seconds.pop(group, None)

    def __len__(self) -> int:
        return len(self._until_seconds)

    def _forget_until(self, now_seconds: float) -> None:
        """Groups that are gone leave nothing behind."""
        while self._until_seconds:
            group, until_seconds = next(iter(self._until_seconds.items()))
            if now_seconds < until_seconds:
                return
            del self._until_seconds[group]

"""ConfigError: a refused configuration with all its errors."""

from collections.abc import Iterable

from bayplan.problems import BadInputError, Problem


class ConfigError(BadInputError):
    """Its message has one line per problem."""

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        assert self.problems
        before = f"{source}: " if source else ""
        super().__init__("\n".join(before + str(problem) for problem in self.problems))

"""The inputs, configurations and versions of a comparison, for the reader of its report."""

import difflib
from dataclasses import dataclass, field
from importlib.metadata import version
from platform import python_version
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ComparedConfiguration:
    name: str
    #: The file or document of the configuration.
    source: str
    #: None: the default configuration.
    text: str | None


@final
@dataclass(frozen=True, slots=True)
class About:
    """Inputs, configurations, plugins and versions."""

    #: Input's name → its paths.
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    configurations: tuple[ComparedConfiguration, ...] = ()
    plugin_files: tuple[str, ...] = ()

    @property
    def versions(self) -> str:
        return f"Bayplan {version('bayplan')}, Python {python_version()}"

    def difference(self, baseline: str, name: str) -> list[str]:
        """Lines of a unified diff of two configurations; empty: the texts are equal."""
        texts = {one.name: one.text or "" for one in self.configurations}
        if baseline not in texts or name not in texts:
            return []
        one, other = texts[baseline].splitlines(), texts[name].splitlines()
        return list(difflib.unified_diff(one, other, baseline, name, lineterm=""))

"""The folder with the examples, which the package carries."""

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
#: The wheel carries the folder within the package. In a checkout the folder is beside `src`.
_PLACES = (_PACKAGE / "examples", _PACKAGE.parents[1] / "examples")


def examples_folder() -> Path:
    """The folder with the examples. Raises FileNotFoundError if the installation has none."""
    for folder in _PLACES:
        if (folder / "quickstart").is_dir():
            return folder
    raise FileNotFoundError("the examples are not installed; install the package bayplan again")

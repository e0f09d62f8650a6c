"""Programs that check what the chart renders, built once with Go.

kubeconform comes from the folder $KUBECONFORM_ASSETS or from the cache.

    python -m tests.deploy.checkers
"""

from pathlib import Path

from tests.go_programs import GoModule, GoPrograms

_FOLDER = Path(__file__).with_name("programs")

KUBECONFORM = GoPrograms(
    "kubeconform",
    "KUBECONFORM_ASSETS",
    (
        GoModule(
            _FOLDER / "kubeconform",
            {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"},
        ),
    ),
)

if __name__ == "__main__":
    KUBECONFORM.main()

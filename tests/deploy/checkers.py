"""Programs that check the rendered chart, built once with Go.

kubeconform comes from the folder $KUBECONFORM_ASSETS, promtool from the folder $PROMTOOL_ASSETS;
else both come from the cache. kubeconform takes seconds to build, promtool takes minutes.

    python -m tests.deploy.checkers [kubeconform|promtool]
"""

import sys
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
#: Without service discovery, which `promtool test rules` does not use. Some modules that it needs
#: cannot be downloaded from every proxy; `go mod tidy` requests all of them and fails there.
PROMTOOL = GoPrograms(
    "promtool",
    "PROMTOOL_ASSETS",
    (
        GoModule(
            _FOLDER / "promtool",
            {"promtool": "github.com/prometheus/prometheus/cmd/promtool"},
            ("-tags", "remove_all_sd"),
        ),
    ),
)

if __name__ == "__main__":
    {"kubeconform": KUBECONFORM, "promtool": PROMTOOL}[(*sys.argv, "kubeconform")[1]].main()

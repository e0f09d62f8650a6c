"""Programs that check the rendered chart and the kubectl plugin, built once with Go.

kubeconform comes from the folder $KUBECONFORM_ASSETS, promtool from $PROMTOOL_ASSETS, krew from
$KREW_ASSETS; else they come from the cache. promtool takes minutes to build, the others seconds.

    python -m tests.deploy.checkers [kubeconform|promtool|krew]
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

KREW = GoPrograms(
    "krew",
    "KREW_ASSETS",
    (
        GoModule(
            _FOLDER / "krew",
            {
                "krew": "sigs.k8s.io/krew/cmd/krew",
                "validate-krew-manifest": "sigs.k8s.io/krew/cmd/validate-krew-manifest",
            },
        ),
    ),
)
_PROGRAMS = {"kubeconform": KUBECONFORM, "promtool": PROMTOOL, "krew": KREW}

if __name__ == "__main__":
    _PROGRAMS[(*sys.argv, "kubeconform")[1]].main()

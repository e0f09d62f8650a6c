"""The programs etcd and kube-apiserver.

From $KUBEBUILDER_ASSETS where that is set, as is the convention of the field; else from a cache
folder, where they are built once from the Go module beside this file.
"""

from pathlib import Path

from tests.go_programs import GoModule, GoPrograms

PROGRAMS = GoPrograms(
    "control-plane",
    "KUBEBUILDER_ASSETS",
    (
        GoModule(
            Path(__file__).with_name("control_plane"),
            {
                "etcd": "go.etcd.io/etcd/server/v3",
                "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
            },
        ),
    ),
)

if __name__ == "__main__":
    PROGRAMS.main()

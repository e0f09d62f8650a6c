"""The programs of a cluster without machines: from $E2E_ASSETS, or built once from Go modules."""

from pathlib import Path

from tests.go_programs import GoModule, GoPrograms

KUBERNETES_VERSION = "1.37.0"
_VERSION = "k8s.io/component-base/version"
_MAJOR, _MINOR, _ = KUBERNETES_VERSION.split(".")
#: One spec reads the version of the API server.
_SET_VERSION = " ".join(
    f"-X {_VERSION}.{name}={value}"
    for name, value in (
        ("gitVersion", f"v{KUBERNETES_VERSION}"),
        ("gitMajor", _MAJOR),
        ("gitMinor", _MINOR),
    )
)
_FOLDER = Path(__file__).with_name("programs")

PROGRAMS = GoPrograms(
    "e2e",
    "E2E_ASSETS",
    (
        GoModule(
            _FOLDER / "kubernetes",
            {
                "etcd": "go.etcd.io/etcd/server/v3",
                "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
                "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
                "e2e.test": "k8s.io/kubernetes/test/e2e",
            },
            ("-ldflags", _SET_VERSION),
        ),
        GoModule(_FOLDER / "kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
    ),
)

if __name__ == "__main__":
    PROGRAMS.main()

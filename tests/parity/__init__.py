"""Recorded answers of kube-scheduler, compared with ours."""

"""Shadow mode: every decision of another scheduler, compared with Bayplan's. Nothing is written."""

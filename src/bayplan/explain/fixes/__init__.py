"""Changes that may make a pod fit, one file per subject, and the search that tries them."""

"""The scheduler as a pure function of events: it decides, a shell performs."""

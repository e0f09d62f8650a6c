"""The outputs of a run: its result, its report and its folder."""

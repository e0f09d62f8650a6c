"""What a run leaves behind: its result, its report and its folder."""

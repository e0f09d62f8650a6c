"""The examples at the end of a command's help."""


def examples(*lines: str) -> str:
    """An epilog: commands to copy, one per line."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))

"""The in-tree plugins, one file each; they do not know one another."""

"""Why a pod has no node, and which changes give it one: values, and their text."""

"""Pod groups: membership, one attempt at a whole group, domains, preemption, refusals, status."""

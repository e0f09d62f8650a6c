"""The ranking of the nodes for one kind of pods, and the results of plugins that it consists of.

A ranking orders the feasible nodes by total score, and the nodes of one total in the order of the
tie-break. The next equal pod takes the first node. A change of a node moves that node only. The
modules, in the order of their imports:

row_cache        the results of one row-wise plugin for one signature part, by row
evaluation_plan  the plugins whose results a ranking has, and those that each cycle calls; the
                 evaluation of a single row
score_index      rows by total score: the index of a ranking, and one for each cell
node_feasibility by row, the verdict of the cached filters
node_equivalence what became of equivalent nodes, in place of calling plugins
ranked_nodes     `RankedNodes`, the ranking: feasibility, totals, and what follows after a change
topology_counts  pods by topology domain, as the cells count them
node_cells       `NodeCells`: what plugins that count pods by topology domain add to a ranking,
                 evaluated once per cell of nodes with equal counts
choices          the choices for equal pods, before any of them is counted

Nothing here has a name for a pod's signature or decides when results are dropped: `engine/reuse/`
does. Pod groups use rankings, too (`engine/podgroups/`).
"""

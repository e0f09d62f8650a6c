"""Cached results per pod signature (KEP-5598). They are exact: what may be wrong is dropped first.

A row-wise plugin gives the same result for equal signature parts and unchanged rows. A
`ResultCache` per profile maps a signature to a `SignatureEntry`. An entry holds one row cache per
row-wise plugin and, for each set of plugins that skip, a `RankedNodes`: the nodes by total score
(both are in `engine/ranking/`). Entries with an equal part of the signature share its row cache.
Entries that differ only in the parts of plugins that skip share a ranking (`SharedRanking`). The
steps of a cycle that use the cache are in `engine/reuse_steps.py`.

KEP-5598 has three operations. Here they are exact:
create    the first pod of a signature opens an entry, which fills as plugins answer
update    a row cache forgets the rows that changed in the facets it reads when a cycle needs it;
          nothing happens at the change itself
nominate  a repeated pod takes the best node of the ranking, after changed rows were evaluated

PodTopologySpread and InterPodAffinity look across nodes, but by counts alone. `NodeCells` completes
a ranking for the pods of one template with such constraints.

An equal pod that follows another one may need no cycle at all (`engine/runs.py`). A cycle takes the
first way that applies:

1. One pod was placed since, and its node is now equivalent to a node that was evaluated before:
   the ranking moves one node (`RankedNodes.follow`).
2. Few rows changed: these rows are evaluated one by one (`RankedNodes.update`).
3. More rows changed: the ranking is dropped, the plugins evaluate the unknown rows as arrays
   through the row caches (`SignatureEntry.filter` and `score`), and the nodes are ranked again.
4. More rows changed, and calling the plugins for all nodes is faster than catching up: the cycle
   runs without the cache, and rankings that are too far behind are dropped
   (`ResultCache.steps_aside`).

Every change of a row is the next generation of the change log (`state/change_log.py`). What may
lag behind the log:

| value                         | meaning                               | may lag behind           |
| ----------------------------- | ------------------------------------- | ------------------------ |
| `log.generation`              | number of the newest change           | nothing                  |
| `RowCache.generation`         | cached results are valid as of then   | the log; entries share   |
|                               |                                       | row caches               |
| `RankedNodes.generation`      | feasibility and totals as of then     | the log and its row      |
|                               |                                       | caches; update first     |
| moved and unscored rows       | feasible rows that have no total yet  | the ranking, until       |
|                               |                                       | `score`                  |
| extremes of a `WeightedScore` | of the rows that have a total         | nothing                  |
| `ScoreIndex`                  | totals of the rows that have a total  | nothing                  |
| draw order of a ranking       | as when the nodes were ranked         | nothing; a new order     |
|                               |                                       | drops the ranking        |
| `SignatureEntry.generation`   | when a cycle last used the entry, or  | the log; says how much   |
|                               | -1; rankings may be older             | changed since            |
| `NodeCells.generation`        | counts and cells as of then           | the log; update first    |
| `ObjectGeneration.now()`      | changes of objects and affinity terms | nothing: an older state  |
|                               |                                       | is not used              |

`ResultCache.validate` recomputes all of this from scratch. Tests call it after each step.
"""

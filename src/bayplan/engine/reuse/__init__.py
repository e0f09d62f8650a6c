"""Cached results per pod signature (KEP-5598). They are exact: a result that may be wrong is
dropped.

docs/batching.md explains the mechanism, docs/architecture.md where its parts are. A `ResultCache`
per profile maps a signature to a `SignatureEntry`, which holds one row cache per row-wise plugin
and, for each set of plugins that skip, a `RankedNodes`. Entries with an equal part of the signature
share its row cache, and entries that differ only in the parts of plugins that skip share a ranking
(`SharedRanking`). A change of a row drops nothing at once: a cycle that needs an entry brings it up
to date.

An equal pod that follows another one may need no cycle at all (`engine/runs.py`). A cycle takes the
first way that applies:

1. One pod was placed since, and its node is now equivalent to a node that was evaluated before:
   the ranking moves one node (`RankedNodes.follow`).
2. Few rows changed: these rows are evaluated one by one (`RankedNodes.update`).
3. More rows changed: the ranking is dropped, the plugins evaluate the unknown rows as arrays
   through the row caches (`RowCaches.filter` and `score`), and the nodes are ranked again.
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

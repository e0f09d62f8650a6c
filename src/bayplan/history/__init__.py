"""The past of a scheduler: one log of what it learned and decided, and what follows from it.

`state_log` makes the entries of the log (`entries`): each change of an object, each beginning of an
attempt, each record of the journal. `state_files` stores them in the folder of a run, and
`past_state` keeps the newest ones in memory. Everything else is a function of the entries: a state
is their sum (`past_state`), a timeline is their fold (`timeline_fold`, `timeline`), and one attempt
is repeated from the state before it (`node_verdict` describes the result; `bayplan.model` repeats).

No module here draws a page, knows the folder of a run, or makes a decision.
"""

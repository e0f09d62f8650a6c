"""The web page of Bayplan: runs and clusters in a browser.

`recording` repeats a run and records its changes, `timeline` has the changes as columns and the
state at any of them, `answers` are the JSON answers, `pages` computes them, `decisions` reads the
journal, `server` serves the answers and the files in `static`. The page itself is hand-written ES
modules; nothing is built and nothing is fetched from another host. A scheduler never imports this
package.
"""

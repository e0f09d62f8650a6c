"""The web page of Bayplan: runs, clusters, shadows and running schedulers in a browser.

`subjects` says what a page is about, `answers` are the JSON answers, `pages` computes them from the
state of a timeline (`bayplan.history`), `model_answers` asks a model, and `server` serves the
answers and the files in `static`. The page itself is hand-written ES modules; nothing is built and
nothing is fetched from another host. A scheduler never imports this package.
"""

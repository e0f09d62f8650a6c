"""Answers: what every answer of Bayplan has in common, on every surface.

`document` has the base of all answers, with its schema. An answer gives its parts for a reader
(lines and tables) and its list as rows of plain values; everything else follows from these two:
`pages` prints the parts as text and as HTML, `markdown` as Markdown, and `formats` writes what `-o`
names. `table` lays out a table for a terminal's width. `amounts`, `times`, `names` and `reasons`
print single values, and `csv_text` writes rows for spreadsheets.

The answers themselves are in the packages that compute them. This package knows no engine.
"""

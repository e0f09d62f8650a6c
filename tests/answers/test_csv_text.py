"""Rows for spreadsheets."""

from bayplan.answers.csv_text import csv_text


def test_a_text_that_is_a_formula_begins_with_an_apostrophe() -> None:
    rows = [("=1+1", "+1", "-x", "@a", "\t1"), ("a", -1, 2.5, None, "b,c")]
    assert csv_text(list("vwxyz"), rows) == (
        "v,w,x,y,z\n'=1+1,'+1,'-x,'@a,'\t1\na,-1,2.5,,\"b,c\"\n"
    )

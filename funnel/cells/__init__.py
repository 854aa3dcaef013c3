"""Many columns as one alphabet: cells, and what a row of a cell looks like. The secret is no argument of anything
here.

    sources -> rare values merged -> columns and codes -> tree of cells -> profiles -> rows

`make.py` does all of it, `cells.py` is what it returns, `funnel.format.cells` is how that is published.
"""

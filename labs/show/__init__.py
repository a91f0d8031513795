"""Figures, tables and widgets of the notebooks, from the results of labs.results.

figure      what all figures share: made, stamped, shown
plots       figures of runs
widgets     controls above a picture that follows them
tables      rows as a table
"""

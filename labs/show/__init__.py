"""Figures, tables and widgets of the notebooks; nothing here computes a result.

figure      what all figures share: made, stamped, shown
plots       figures of runs
widgets     controls above a picture that follows them
tables      rows as a table
"""

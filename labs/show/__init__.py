"""Figures, tables and widgets of the notebooks; nothing here computes a result.

figure      what all figures share: made, stamped, shown
plots       figures of runs
canvas      figures that are drawn within a blink
widgets     controls above a picture that follows them; lines to tick
tables      rows as a table
"""

"""Drawings of single papers: one module per paper, one function per figure, by their names."""

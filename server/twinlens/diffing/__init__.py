"""Load two traces, align and compare them, name the origin and the likely cause."""

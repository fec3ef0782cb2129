"""Which common tests really run for each model, and why the others do not."""

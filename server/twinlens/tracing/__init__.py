"""Record every module's inputs and outputs during one forward."""

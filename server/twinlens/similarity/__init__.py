"""Which library classes resemble this one: embedder, Jaccard, index on disk, ranking."""

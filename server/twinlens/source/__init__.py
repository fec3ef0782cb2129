"""Python source to definitions: parsing, sanitising, modular lineage."""

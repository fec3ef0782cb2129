"""Replace layer classes by a registry, and keep the output recorders in step."""

"""One thin file a feature, each with `register(server, services)`."""

"""The language server: it translates an editor's questions into calls of the rooms below."""

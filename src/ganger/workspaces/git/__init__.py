"""Git mode: Ganger's own repository, workspaces made from it, and commits."""

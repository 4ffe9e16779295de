"""What several commands share: options and their types, a project's settings, checks of outputs."""

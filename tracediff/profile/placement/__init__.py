"""placement: assigns each event its step, launch, enclosing scopes, module and node in the call tree."""

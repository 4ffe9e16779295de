"""What a collection holds: a row of figures for each variant, from its manifests and traces."""

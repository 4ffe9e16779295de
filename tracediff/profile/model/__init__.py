"""model: `Profile` and its tables, what each of their columns holds, and which of its steps are used."""

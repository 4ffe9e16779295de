"""json: the text of Kineto's JSON → parts of the columns, cut between events and read natively where that can be."""

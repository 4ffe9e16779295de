"""What every output says: the answer, sentences and tables as texts. Renderers lay it out (`tracediff.report`)."""

"""Program behind the wall. It runs generated code; the driver imports nothing from here."""

"""`report.html`: one self-contained file; its charts and its style serve the live page, too."""

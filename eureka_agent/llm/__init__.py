"""Language models behind one asynchronous interface."""

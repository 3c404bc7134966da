"""The program behind the wall: it runs generated code. The driver imports nothing of it but
`messages`."""

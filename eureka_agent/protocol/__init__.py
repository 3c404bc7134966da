"""The worker protocol: JSON lines in both directions, validated on both sides.

The driver writes commands to the worker's standard input. The worker answers with events on the
descriptor that was its standard output; its own prints go to standard error, so generated code
cannot write into the protocol by printing. A file (a policy, a saved state, episodes) is a
`FileHeader` followed by its bytes, and comes before the message that names it. The two sides share
no folder.
"""

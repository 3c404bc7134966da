"""Filters of system calls: numbers, an assembler, the kernel's interface, Docker's profile format.
Standard library only, for both sides."""

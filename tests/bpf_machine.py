"""A machine for classic BPF as the kernel's documentation describes it, written without a look at
the assembler."""

from __future__ import annotations

import struct


def run(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """The action that a filter returns for one system call. Fails on a jump out of the program, or
    one backwards."""
    registers = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0x7F0000001234, *registers)
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator = place = 0
    while True:
        code, if_true, if_false, k = instructions[place]
        place += 1
        if code == 0x20:  # BPF_LD | BPF_W | BPF_ABS
            assert k % 4 == 0
            assert k + 4 <= len(data)
            accumulator = int.from_bytes(data[k : k + 4], "little")
        elif code == 0x54:  # BPF_ALU | BPF_AND | BPF_K
            accumulator &= k
        elif code == 0x05:  # BPF_JMP | BPF_JA
            place += k
        elif code == 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
            place += if_true if accumulator == k else if_false
        elif code == 0x35:  # BPF_JMP | BPF_JGE | BPF_K
            place += if_true if accumulator >= k else if_false
        elif code == 0x06:  # BPF_RET | BPF_K
            return k
        else:
            raise AssertionError(f"instruction {code:#x} is none that a filter here needs")

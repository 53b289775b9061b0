#!/usr/bin/env python3
"""Checks the names that the libraries show. Usage: symbols.py SHARED STATIC MAX_STRIPPED_BYTES
The shared library exports remat_* only, and every function of the header, whose stable part stays short; names
shared between files of the static library start with remat_ or rm_; the library calls nothing that is not safe among
threads, that prints or that exits; stripped, it stays small."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_STABLE_LINES = 190

FORBIDDEN = set(
    """strerror strtok rand srand random localtime gmtime ctime asctime setlocale localeconv readdir tmpnam
    printf vprintf fprintf vfprintf puts fputs putchar perror exit abort quick_exit""".split()
)


def names(*command):
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if len(line.split()) >= 2 and line.split()[-2].isalpha()}


def main():
    shared, static = sys.argv[1], sys.argv[2]
    faults = []
    exported = names("nm", "-D", "--defined-only", shared)
    faults += [f"exported but not public: {name}" for name in sorted(exported) if not name.startswith("remat_")]
    header = (ROOT / "include/remat.h").read_text()
    stable = header[header.index("/* clang-format off */") : header.index("/* clang-format on */")].count("\n")
    if stable > MOST_STABLE_LINES:
        faults.append(f"the stable part of remat.h has {stable} lines, more than {MOST_STABLE_LINES}: two screens")
    header = re.sub(r"/\*.*?\*/", " ", header, flags=re.DOTALL)
    header = re.sub(r"^typedef int remat_\w+\(.*$", " ", header, flags=re.MULTILINE)  # the type of a callback
    public = set(re.findall(r"\b(remat_\w+)\(", header))
    faults += [f"in remat.h but not exported: {name}" for name in sorted(public - exported)]
    faults += [
        f"exported but not in remat.h: {name}" for name in sorted(exported - public) if name.startswith("remat_")
    ]
    used = names("nm", "-D", "--undefined-only", shared)
    faults += [f"the library calls {name}" for name in sorted(used & FORBIDDEN)]
    internal = names("nm", "-g", "--defined-only", static)
    faults += [
        f"shared between files without a prefix: {name}"
        for name in sorted(internal)
        if not re.match(r"(remat_|rm_|_*odr_asan|__odr_asan|_*asan_|DW\.ref\.)", name)
    ]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["strip", "--strip-unneeded", "-o", f"{folder}/lib.so", shared], check=True)
        size = pathlib.Path(folder, "lib.so").stat().st_size
    if size >= int(sys.argv[3]):
        faults.append(f"the stripped library has {size} bytes, {sys.argv[3]} or more")
    for fault in faults:
        print(fault)
    print(
        f"symbols: {len(exported)} exported, {len(internal)} in the static library, {size} bytes stripped, {len(faults)} faults"
    )
    return 1 if faults or not exported else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Checks which folder may include which: reads every #include "..." line of src/, cli/ and examples/ and fails on an
edge that the architecture does not have. Also: the heap is touched in src/base/mem.c only, and file names are
unique.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BELOW_PLAN = {"base", "algo", "graph", "fusion", "milp", "import", "sim", "lower"}
BEHIND_PLAN = {"place", "run"}  # what is done with a plan; no planner sees it
MAY_SEE = {
    "base": {"base"},
    "algo": {"base", "algo"},
    "graph": {"base", "graph"},
    "fusion": {"base", "graph", "fusion"},
    "milp": {"base", "algo", "milp"},
    "import": {"base", "graph", "algo", "import"},
    "sim": {"base", "graph", "algo", "sim"},
    "lower": {"base", "graph", "algo", "lower"},
    # The rooms of the planners: each sees planner.h at their root, and of the others what is named here.
    "plan/chains": BELOW_PLAN | {"plan"},
    "plan/cut": BELOW_PLAN | {"plan"},
    "plan/bound": BELOW_PLAN | {"plan"},
    "plan/search": BELOW_PLAN | {"plan", "plan/bound"},
    "plan/checkmate": BELOW_PLAN | {"plan", "plan/bound", "plan/search", "plan/chains"},
    "plan": BELOW_PLAN | {"plan/chains", "plan/cut", "plan/bound", "plan/search", "plan/checkmate"},
    "place": {"base", "place"},
    "run": {"base", "run"},
    "verify": {"base", "graph", "verify"},
    "zoo": {"base", "zoo"},
    "api": BELOW_PLAN
    | BEHIND_PLAN
    | {"plan", "plan/chains", "plan/cut", "plan/bound", "plan/search", "plan/checkmate", "verify", "zoo", "api"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
HEAP = re.compile(r"\b(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign)\s*\(")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)


def edges(path):
    return [name for quote, name in INCLUDE.findall(path.read_text()) if quote == '"']


def main():
    faults = []
    sources = sorted((ROOT / "src").rglob("*.[ch]"))
    for path in sources:
        layer = path.relative_to(ROOT / "src").parent.as_posix()
        shown = path.relative_to(ROOT)
        if layer not in MAY_SEE:
            faults.append(f"{shown}: the folder {layer} has no place in the layers (tests/layers.py)")
            continue
        for name in edges(path):
            target = name.rpartition("/")[0]
            if name == "remat.h" or target == layer or target in MAY_SEE[layer]:
                continue
            faults.append(f'{shown}: {layer} may not include "{name}"')
        if shown.as_posix() != "src/base/mem.c":
            found = HEAP.search(COMMENT.sub(" ", path.read_text()))
            if found:
                faults.append(f"{shown}: calls {found.group(1)}; only src/base/mem.c touches the heap")
    for path in sorted((ROOT / "cli").rglob("*.[ch]")) + sorted((ROOT / "examples").rglob("*.[ch]")):
        for name in edges(path):
            if name != "remat.h" and not (path.parent / name).is_file():
                faults.append(f'{path.relative_to(ROOT)}: may include remat.h only, not "{name}"')
    seen = {}
    for path in sources:
        other = seen.setdefault(path.name, path)
        if other is not path:
            faults.append(f"{path.relative_to(ROOT)}: the name is taken by {other.relative_to(ROOT)}")
    for fault in faults:
        print(fault)
    print(f"layers: {len(sources)} files, {len(faults)} faults")
    return 1 if faults or not sources else 0


if __name__ == "__main__":
    sys.exit(main())

"""The ctypes declarations say what include/remat.h says: every prototype, and every struct as the C compiler lays it
out.
"""

import ctypes
import re
import subprocess

import pytest
from conftest import ROOT

from remat import _native

HEADER = re.sub(
    r"/\*.*?\*/|//[^\n]*|^#[^\n]*", " ", (ROOT / "include" / "remat.h").read_text(), flags=re.DOTALL | re.MULTILINE
)
SCALARS = {"int64_t": "l", "uint32_t": "u", "size_t": "z", "unsigned": "U", "int": "i", "void": "v"}
POINTERS = {"char *": "s", "int64_t *": "L", "uint32_t *": "A", "size_t *": "Z", "void *": "p", "remat_sink *": "k"}
STRUCTS = {
    "option": "o",
    "entry": "e",
    "info": "I",
    "step": "t",
    "summary": "m",
    "verdict": "d",
    "bound": "B",
    "statement": "T",
    "stage": "S",
}


def letter(text):
    """The letter of _native.PROTOTYPES for a C type, as the header writes it."""
    text = re.sub(r"\bconst\b", "", text).strip()
    if "(*" in text:
        return "g" if "remat_progress" in text else "w"
    match = re.match(r"(\w+)\s*(\**)", text)
    base, stars = match.group(1), match.group(2)
    if not stars:
        return SCALARS.get(base, "i")  # the rest are enums
    if f"{base} {stars}" in POINTERS:
        return POINTERS[f"{base} {stars}"]
    if stars == "**":
        return "P"
    return STRUCTS.get(base.removeprefix("remat_"), "p")


def split(arguments):
    depth, parts, part = 0, [], ""
    for c in arguments:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts, part = parts + [part], ""
        else:
            part += c
    return [p for p in parts + [part] if p.strip() not in ("", "void")]


def declared():
    found = {}
    for statement in re.split(r"[;{}]", HEADER):
        match = re.fullmatch(r"((?:const )?\w+ \*? ?)(remat_\w+)\((.*)\)", " ".join(statement.split()))
        if match:
            result, name, arguments = match.groups()
            found[name] = letter(result) + "".join(map(letter, split(arguments)))
    return found


def test_prototypes_are_those_of_the_header():
    header = declared()
    assert len(header) > 90
    assert {name: header.get(name) for name in _native.PROTOTYPES} == _native.PROTOTYPES


@pytest.mark.parametrize(
    "name", ["Progress", "Option", "Info", "Entry", "Step", "Summary", "Verdict", "Bound", "Statement", "Stage"]
)
def test_structs_are_laid_out_as_by_the_compiler(name, tmp_path):
    struct = getattr(_native, name)
    source = tmp_path / "layout.c"
    rows = "".join(f'printf("%zu ", offsetof(remat_{name.lower()}, {field}));' for field, _ in struct._fields_)
    source.write_text(
        f'#include <remat.h>\n#include <stdio.h>\nint main(void) {{ {rows} printf("%zu\\n", sizeof(remat_{name.lower()})); }}\n'
    )
    subprocess.run(
        ["cc", "-DREMAT_EXPERIMENTAL", "-I", str(ROOT / "include"), str(source), "-o", str(tmp_path / "layout")],
        check=True,
    )
    layout = subprocess.run([str(tmp_path / "layout")], check=True, capture_output=True, text=True).stdout
    assert [int(x) for x in layout.split()] == [getattr(struct, field).offset for field, _ in struct._fields_] + [
        ctypes.sizeof(struct)
    ]


def test_a_library_of_another_version_or_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("REMAT_LIBRARY", str(tmp_path / "missing.so"))
    with pytest.raises(ImportError, match="missing.so: not there"):
        _native.load()
    (tmp_path / "old.c").write_text(
        'const char *remat_version(void); const char *remat_version(void) { return "9.9.0"; }\n'
    )
    subprocess.run(["cc", "-shared", "-fPIC", str(tmp_path / "old.c"), "-o", str(tmp_path / "old.so")], check=True)
    monkeypatch.setenv("REMAT_LIBRARY", str(tmp_path / "old.so"))
    with pytest.raises(ImportError, match="version 9.9.0, not 0.1"):
        _native.load()

"""Are the documents true? Runs every command in README, CONTRIBUTING, docs/*.md and the man page, and reads every JSON
example of docs/format.md.

Usage: documents.py PROGRAM [--update]

1. A block of code with lines `$ COMMAND`: what follows a command, up to the next one or the end of the block, is what
   it must print (standard output and error, 80 columns). A line `...` stands for any number of lines. Where nothing
   follows, the command must succeed. The commands of one document run in order, in one folder that looks like the root
   of the repository; what they write stays there. `--update` writes what is printed into the documents.
2. `remat ...` between back quotes, and `.Dl $ remat ...` in the man page: run as it stands if all its operands are
   there (models, or files of the repository), but for `maxbatch`, which takes minutes; else its command must exist,
   and its flags must be flags of that command.
3. `make TARGET`: there is such a target. `bench/...` and the like: there is such a file. They are not run.
4. `--svg docs/images/NAME.svg` in a command that is run: the picture of that name is what the command draws, to the
   byte (`--update` writes it anew). Every picture there is drawn by a command of a document.
5. No line is wider than 120 columns, but for rows of tables.
6. docs/format.md: a graph and a chain are read and written again, and nothing of the example is lost or changed. A
   plan is verified against the graph of the same page, with the digest of that graph in place of `sha256:...`.

Excepted are numbers that depend on time: those in `planned in 0.82 s` and `bounded in 0.82 s`, below the heading
`seconds` of a table, and behind `"seconds":`."""

import difflib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MAN_PAGE = ROOT / "docs" / "remat.1"
COMMAND = re.compile(r"\$ (?P<words>.*?)(?:\s+#\s.*)?$")
SPAN = re.compile(r"`((?:remat |make |bench/|scripts/|tests/)[^`]*)`")
PICTURE = re.compile(r"(?<=--svg )docs/images/([a-z0-9-]+\.svg)\b")
# no file but the graph
ALONE = re.compile(
    r"(?!.* (-o|--output|--svg|--mps) )remat \w+ (zoo:|chain:|tests/data/)\S+( --[a-z-]+( [\w%:.,]+)?)*$"
)
PLACEHOLDER = re.compile(r"^[A-Z_]+$|^\[|^\.\.\.$|^<")


def without_times(text):
    """The text with every number that depends on time replaced by T."""
    text = re.sub(r"\b(planned|bounded) in \d+\.\d+ s\b", r"\1 in T s", text)
    text = re.sub(r'("seconds":)[^,}\s]+', r"\1T", text)
    lines, in_table = [], False
    for line in text.splitlines():
        if in_table and line.strip():
            line = re.sub(r"\s*\S+$", " T", line)
        in_table = (in_table and bool(line.strip())) or line.rstrip().endswith(" seconds")
        lines.append(line.rstrip())
    return lines


def matches(shown, printed):
    """Is `printed` what the document shows? `...` stands for any number of lines."""
    if "..." not in shown:
        return shown == printed
    at = shown.index("...")
    head, tail = shown[:at], shown[at + 1 :]
    return printed[:at] == head and any(matches(tail, printed[i:]) for i in range(at, len(printed) + 1))


class Place:
    """A folder that looks like the root of the repository, and the program in it."""

    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build", "plan.json"):
                (self.folder / entry.name).symlink_to(entry)

    def run(self, command, **more):
        """A shell line whose program is remat; what it prints, and its exit code."""
        line = re.sub(r"^(build/plain/)?remat\b", shlex.quote(self.program), command)
        line = re.sub(r"\| (build/plain/)?remat\b", "| " + shlex.quote(self.program), line)
        env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", COLUMNS="80")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            **more,
        )
        return done.stdout, done.returncode


class Checker:
    def __init__(self, program, update):
        self.program, self.update, self.faults, self.n_run, self.n_words = program, update, [], 0, 0
        self.drawn = set()  # pictures
        self.known = {}  # what commands that stand alone print, and their exit codes
        targets = (ROOT / "Makefile").read_text()
        self.targets = {name for names in re.findall(r"^([a-z][a-z -]*):", targets, re.M) for name in names.split()}
        self.flags = {}

    def fault(self, where, text):
        self.faults.append(f"{where}: {text}")

    # ---- words that cannot be run ----

    def check_made(self, where, words):
        for word in words[1:]:
            if "=" not in word and word not in self.targets:
                self.fault(where, f"make has no target {word!r}")

    def flags_of(self, command):
        if command not in self.flags:
            done = subprocess.run([self.program, command, "--help-all"], capture_output=True, text=True)
            self.flags[command] = set(re.findall(r"--?[a-z][a-z-]*", done.stdout)) if done.returncode == 0 else None
        return self.flags[command]

    def check_words(self, where, words):
        """`remat plan GRAPH --budget B`: are there such a command and such flags?"""
        self.n_words += 1
        if len(words) < 2 or words[1].startswith("-") or PLACEHOLDER.match(words[1]):
            return
        flags = self.flags_of(words[1])
        if flags is None:
            self.fault(where, f"there is no command {words[1]!r}")
            return
        for word in words[2:]:
            name = word.split("=")[0]
            if re.match(r"--?[a-z]", word) and name not in flags:
                self.fault(where, f"{words[1]} has no flag {name}")

    # ---- commands ----

    def is_whole(self, words):
        """Does it name all that it reads?"""
        operands = [word for word in words[2:] if not word.startswith("-")]
        if words[1:2] in (["--version"], ["--help"]) or (
            len(words) > 1 and words[-1] in ("--help", "--help-all", "--list")
        ):
            return True
        if any(PLACEHOLDER.match(word) for word in words[1:]) or not operands or words[1] == "maxbatch":
            return False
        source = operands[0]
        return source.startswith(("zoo:", "chain:")) or (ROOT / source).is_file()

    def printed(self, place, command):
        """What a command prints, and its exit code. One that reads and writes no file of its document is run once
        for all.
        """
        if not ALONE.match(command):
            return place.run(command)
        if command not in self.known:
            self.known[command] = place.run(command)
        return self.known[command]

    def run(self, place, where, command):
        """Runs a command, and compares the picture that it draws."""
        self.n_run += 1
        picture = PICTURE.search(command)
        if not picture:
            return self.printed(place, command)
        name, fresh = picture[1], place.folder / "fresh.svg"
        printed, code = place.run(PICTURE.sub(fresh.name, command))
        kept = ROOT / "docs" / "images" / name
        self.drawn.add(name)
        if code == 0 and not (kept.is_file() and kept.read_bytes() == fresh.read_bytes()):
            self.fault(where, f"{command!r} draws another picture than docs/images/{name}")
            if self.update:
                kept.parent.mkdir(exist_ok=True)
                kept.write_bytes(fresh.read_bytes())
        return printed, code

    def check_span(self, place, where, text):
        try:
            words = shlex.split(text)
        except ValueError:
            self.fault(where, f"{text!r} is no shell line")
            return
        if words[0] == "make":
            self.check_made(where, words)
        elif words[0] != "remat":
            if not re.search(r"[*{]", words[0]) and not (ROOT / words[0].split(":")[0].rstrip("/")).exists():
                self.fault(where, f"there is no {words[0]}")
        elif self.is_whole(words):
            printed, code = self.run(place, where, text)
            if code:
                self.fault(where, f"{text!r} is exit code {code}: {printed.strip()[-300:]}")
        else:
            self.check_words(where, words)

    def check_shown(self, place, where, command, shown):
        """Runs a command of a block; what the block should show."""
        words = shlex.split(command)
        if words[0] == "make":
            self.check_made(where, words)
            return shown
        if not re.match(r"(build/plain/)?remat$", words[0]):
            if words[0] not in ("pip", "cc", "cmake", "python", "export"):
                self.fault(where, f"{words[0]!r} is no program that documents may name")
            return shown
        printed, code = self.run(place, where, command)
        if not any(line.strip() for line in shown):
            if code:
                self.fault(where, f"{command!r} is exit code {code}: {printed.strip()[-300:]}")
            return shown
        expected, found = without_times("\n".join(shown)), without_times(printed)
        while expected and not expected[-1]:
            expected.pop()
        if matches(expected, found):
            return shown
        self.fault(
            where,
            f"{command!r} prints something else:\n"
            + "\n".join(difflib.unified_diff(expected, found, "document", "program", lineterm="", n=1)),
        )
        return printed.splitlines() if "..." not in expected else shown

    def check_block(self, place, where, lines):
        """The lines of a block of code; what they should be."""
        result, at = [], 0
        while at < len(lines):
            found = COMMAND.match(lines[at])
            result.append(lines[at])
            at += 1
            if not found:
                continue
            end = at
            while end < len(lines) and not COMMAND.match(lines[end]):
                end += 1
            result += self.check_shown(place, where, found["words"], lines[at:end])
            at = end
        return result

    def check_width(self, name, text):
        """No line is wider than 120 columns, but for rows of tables, which cannot be broken."""
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > 120 and not line.startswith("|"):
                self.fault(f"{name}:{number}", f"{len(line)} columns, more than 120")

    def check_document(self, path):
        name = path.relative_to(ROOT)
        self.check_width(name, path.read_text())
        with tempfile.TemporaryDirectory() as folder:
            place, result = Place(self.program, folder), []
            parts = re.split(r"(^```.*?^```$)", path.read_text(), flags=re.M | re.S)
            for i, part in enumerate(parts):  # every second one is a block
                number = "".join(parts[:i]).count("\n") + 1
                if i % 2:
                    lines = part.split("\n")
                    part = "\n".join([lines[0], *self.check_block(place, f"{name}:{number}", lines[1:-1]), lines[-1]])
                else:
                    for span in SPAN.finditer(part):
                        self.check_span(
                            place, f"{name}:{number + part[: span.start()].count(chr(10))}", span[1].replace("\n", " ")
                        )
                result.append(part)
        if self.update:
            path.write_text("".join(result))

    def check_man_page(self):
        with tempfile.TemporaryDirectory() as folder:
            place = Place(self.program, folder)
            for number, line in enumerate(MAN_PAGE.read_text().splitlines(), 1):
                if line.startswith(".Dl $ remat "):
                    self.check_span(place, f"docs/remat.1:{number}", line[len(".Dl $ ") :].split(" | ")[0])

    def check_pictures(self):
        for path in sorted((ROOT / "docs" / "images").glob("*")):
            if path.name not in self.drawn:
                self.fault(f"docs/images/{path.name}", "no command of a document draws it")

    # ---- the examples of docs/format.md ----

    def lost(self, where, example, written):
        """Says what of the example is not in what was written."""
        if isinstance(example, dict) and isinstance(written, dict):
            for key, value in example.items():
                self.lost(f"{where}.{key}", value, written.get(key, self.default(where, key)))
        elif isinstance(example, list) and isinstance(written, list) and len(example) == len(written):
            for i, (one, other) in enumerate(zip(example, written)):
                self.lost(f"{where}[{i}]", one, other)
        elif example != written:
            self.fault(where, f"the example has {example!r}, written is {written!r}")

    @staticmethod
    def default(where, key):
        """What a key that is not written stands for: writers leave defaults out."""
        return {
            "delta": 0,
            "of": 0,
            "ob": 0,
            "keep": 0,
            "tf": 0,
            "tb": 0,
            "abar": 0,
            "size_unit": "bytes",
            "cost_unit": "ns",
        }.get(key)

    def check_examples(self):
        path = ROOT / "docs" / "format.md"
        blocks = re.findall(r"^```json\n(.*?)^```", path.read_text(), re.M | re.S)
        with tempfile.TemporaryDirectory() as folder:
            place, digest, kinds = Place(self.program, folder), None, []
            for text in blocks:
                example = json.loads(text)
                kind = example["format"]
                kinds.append(kind)
                where, file = f"docs/format.md, {kind}", place.folder / f"{kind}.json"
                if kind == "remat-plan":
                    example["graph"]["digest"] = digest
                    file.write_text(json.dumps(example))
                    printed, code = place.run(f"remat verify remat-graph.json {file}")
                    if code:
                        self.fault(where, printed.strip())
                    continue
                file.write_text(text)
                printed, code = place.run(f"remat import {file} -o written.json")
                if code or printed:
                    self.fault(where, printed.strip())
                    continue
                self.lost(where, example, json.loads((place.folder / "written.json").read_text()))
                if kind == "remat-graph":
                    digest = json.loads(place.run(f"remat info {file} --json")[0])["digest"]
            if sorted(kinds) != ["remat-chain", "remat-graph", "remat-plan"]:
                self.fault("docs/format.md", f"there are examples of {kinds}")


def main():
    update = "--update" in sys.argv
    checker = Checker(os.path.abspath(sys.argv[1]), update)
    for path in DOCUMENTS:
        checker.check_document(path)
    checker.check_man_page()
    checker.check_pictures()
    checker.check_examples()
    for fault in checker.faults:
        print(fault)
    print(
        f"documents: {checker.n_run} commands run, {checker.n_words} looked up, {len(checker.faults)} faults"
        + (", written anew" if update else "")
    )
    return 1 if checker.faults and not update else 0


if __name__ == "__main__":
    sys.exit(main())

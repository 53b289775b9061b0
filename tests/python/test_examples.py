"""The Python examples, as scripts: run here and not by an interpreter each, which would load torch again.
train_resnet.py is in test_checkpointable.py.
"""

import runpy
import sys

import pytest
from conftest import ROOT

pytest.importorskip("torch")


@pytest.fixture
def example(monkeypatch, capsys):
    """example(name, arguments): what it prints."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_train_gpt(example):
    said = example("train_gpt.py", "60%", "2")
    assert "ops run again" in said and "step 1: loss" in said


def test_trace_offline(example, tmp_path):
    said = example("trace_offline.py", str(tmp_path / "encoder.json.gz"))
    assert "9.7 billion parameters" in said and said.count("% from the best") == 3
    assert (tmp_path / "encoder.json.gz").stat().st_size > 0

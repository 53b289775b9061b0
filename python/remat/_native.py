"""libremat through ctypes: finds the shared library and declares what include/remat.h declares. Nothing here decides
anything.

The library is looked for in this order: the file named by the environment variable REMAT_LIBRARY; next to this file,
where a wheel has it; in build/plain of the source tree that this file lies in; where the system keeps its libraries."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_int,
    c_int64,
    c_size_t,
    c_uint,
    c_uint32,
    c_void_p,
)

NONE = 0xFFFFFFFF  # REMAT_NONE: no such index
ABSENT = -1  # REMAT_ABSENT: not given
BUDGET_NONE, BUDGET_MIN = -1, -2
VERSION = (0, 1)  # of the header that this file was written for; every minor version may break the ABI


class Struct(Structure):
    """A C struct as ctypes sees it; `fields()` gives its members as Python values, absent numbers as None."""

    def fields(self) -> dict:
        found = {}
        for name, kind in self._fields_:
            value = getattr(self, name)
            if kind is c_int64 and value == ABSENT or kind is c_uint32 and value == NONE:
                value = None
            elif isinstance(value, bytes):
                value = value.decode("utf-8", "replace")
            elif isinstance(value, ctypes.Array):
                value = list(value)
            found[name] = value
        return found


class Answer(Struct):
    """A struct that the library fills: it begins with its size."""

    def __init__(self) -> None:
        super().__init__(size=ctypes.sizeof(self))

    def fields(self) -> dict:
        found = super().fields()
        del found["size"]
        return found


class Progress(Struct):
    _fields_ = [
        ("strategy", c_char_p),
        ("permille", c_int),
        ("cost", c_int64),
        ("peak_bytes", c_int64),
        ("work", c_int64),
        ("bound_cost", c_int64),
    ]


class Option(Struct):
    _fields_ = [("name", c_char_p), ("help", c_char_p), ("initial", c_int64), ("low", c_int64), ("high", c_int64)]


class Info(Answer):
    _fields_ = [
        ("size", c_size_t),
        *((name, c_uint32) for name in "ops values storages views multi_output pinned dead cut_values".split()),
        *((name, c_int64) for name in "resident_bytes keep_all_peak_bytes keep_all_cost need_bytes".split()),
        ("keep_all_peak_step", c_uint32),
        ("need_op", c_uint32),
    ]


class Entry(Struct):
    _fields_ = [("name", c_char_p), ("help", c_char_p)]


class Step(Struct):
    _fields_ = [("kind", c_uint32), ("index", c_uint32)]


class Summary(Struct):
    _fields_ = [
        *((name, c_char_p) for name in "strategy graph digest cost_model cost_unit bound_scope bound_method".split()),
        *(
            (name, c_int64)
            for name in """budget_bytes peak_bytes cost bound_cost keep_all_peak_bytes keep_all_cost resident_bytes
                  need_bytes offloaded_bytes saved_bytes cut_capacity traffic_bytes seed work bandwidth""".split()
        ),
        *((name, c_uint32) for name in "peak_step need_op steps ops recomputed_ops".split()),
        ("outcome", c_int),
        ("stopped", c_int),
        ("kind", c_int),
        ("within_budget", c_bool),
        ("flags", c_uint),
        ("any_order_cost", c_int64),
        ("any_order_method", c_char_p),
        ("align", c_int64),
        ("least_peak_bound", c_int64),
    ]


class Verdict(Answer):
    _fields_ = [
        ("size", c_size_t),
        ("valid", c_bool),
        ("peak_bytes", c_int64),
        ("cost", c_int64),
        ("host_bytes", c_int64),
        ("peak_step", c_uint32),
        ("peak_op", c_uint32),
        ("first_bad_step", c_uint32),
        ("reason", c_char * 240),
    ]


class Bound(Answer):
    _fields_ = [
        ("size", c_size_t),
        ("status", c_int),
        ("budget_bytes", c_int64),
        ("cost", c_int64),
        ("keep_all_cost", c_int64),
        ("need_bytes", c_int64),
        ("need_op", c_uint32),
        ("need_values", c_uint32 * 4),
        ("n_need_values", c_uint32),
        ("scope", c_char_p),
        ("method", c_char_p),
        ("rules", c_uint),
        ("any_order_cost", c_int64),
    ]


class Statement(Struct):
    _fields_ = [
        ("kind", c_int),
        ("step", Step),
        ("step_index", c_uint32),
        ("value", c_uint32),
        ("reg", c_uint32),
        ("bytes", c_int64),
        ("memory_bytes", c_int64),
    ]


class Stage(Struct):
    _fields_ = [("name", c_char_p), *((name, c_int64) for name in "a abar delta tf tb of ob keep".split())]


SINK = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
ON_PROGRESS = CFUNCTYPE(None, c_void_p, POINTER(Progress))
ON_WARNING = CFUNCTYPE(None, c_void_p, c_char_p)

# Letters for argument and result types. Handles are void pointers: the classes of remat/__init__.py keep them apart.
_TYPES = {
    "p": c_void_p,
    "s": c_char_p,
    "i": c_int,
    "u": c_uint32,
    "U": c_uint,
    "l": c_int64,
    "z": c_size_t,
    "v": None,
    "P": POINTER(c_void_p),
    "L": POINTER(c_int64),
    "A": POINTER(c_uint32),
    "Z": POINTER(c_size_t),
    "o": POINTER(Option),
    "e": POINTER(Entry),
    "I": POINTER(Info),
    "t": POINTER(Step),
    "m": POINTER(Summary),
    "d": POINTER(Verdict),
    "B": POINTER(Bound),
    "T": POINTER(Statement),
    "S": POINTER(Stage),
    "k": SINK,
    "g": ON_PROGRESS,
    "w": ON_WARNING,
}
# name: result, then arguments. tests/python/test_native.py holds this table and the structs against remat.h.
PROTOTYPES = {
    "remat_version": "s",
    "remat_ctx_new": "pp",
    "remat_ctx_free": "vp",
    "remat_ctx_stop": "vp",
    "remat_ctx_resume": "vp",
    "remat_ctx_set": "ipsl",
    "remat_ctx_get": "ipsL",
    "remat_option_at": "oz",
    "remat_ctx_on_progress": "vpgp",
    "remat_ctx_on_warning": "vpwp",
    "remat_ctx_error": "sp",
    "remat_ctx_error_file": "sp",
    "remat_ctx_error_place": "sp",
    "remat_ctx_error_reason": "sp",
    "remat_ctx_class": "ipsi",
    "remat_ctx_class_clear": "vp",
    "remat_input_open": "ipsP",
    "remat_input_parse": "ipspzP",
    "remat_input_kind": "ip",
    "remat_input_free": "vp",
    "remat_graph_load": "ipsP",
    "remat_graph_read": "ippP",
    "remat_graph_write": "ippikp",
    "remat_graph_free": "vp",
    "remat_graph_prepare": "ippUsP",
    "remat_graph_info": "ippI",
    "remat_graph_need_values": "ippAuA",
    "remat_graph_name": "sp",
    "remat_graph_digest": "sp",
    "remat_graph_cost_model": "sp",
    "remat_graph_cost_unit": "sp",
    "remat_graph_n_ops": "up",
    "remat_graph_n_values": "up",
    "remat_graph_op_name": "spu",
    "remat_graph_op_target": "spu",
    "remat_graph_value_name": "spu",
    "remat_graph_value_dtype": "spu",
    "remat_graph_value_shape": "LpuA",
    "remat_graph_op_get": "lpui",
    "remat_graph_value_get": "lpui",
    "remat_graph_op_in": "ApuA",
    "remat_graph_op_out": "ApuA",
    "remat_graph_op_inplace": "upuu",
    "remat_graph_outputs": "ApA",
    "remat_builder_new": "pps",
    "remat_builder_value": "upsl",
    "remat_builder_view": "upslu",
    "remat_builder_value_set": "vpuil",
    "remat_builder_value_tensor": "vpusLu",
    "remat_builder_op": "upsAuAu",
    "remat_builder_op_set": "vpuil",
    "remat_builder_op_target": "vpus",
    "remat_builder_op_inplace": "vpuuu",
    "remat_builder_output": "vpu",
    "remat_builder_cost_unit": "vps",
    "remat_builder_finish": "ipP",
    "remat_builder_free": "vp",
    "remat_zoo_at": "ez",
    "remat_strategy_at": "ez",
    "remat_strategy_heeds": "sz",
    "remat_device_at": "ez",
    "remat_budget_parse": "ipslL",
    "remat_plan_make": "ippslP",
    "remat_plan_improve": "ipppslP",
    "remat_plan_of_steps": "ipptzsllP",
    "remat_steps_memory": "ipptzL",
    "remat_plan_read": "ippP",
    "remat_plan_write": "ippikp",
    "remat_plan_free": "vp",
    "remat_plan_status": "ip",
    "remat_plan_summary": "mp",
    "remat_plan_steps": "tpZ",
    "remat_bound_find": "ipplB",
    "remat_verify": "ipptzld",
    "remat_plan_verify": "ipppd",
    "remat_plan_verify_bound": "ipppd",
    "remat_lower": "ipptzP",
    "remat_program_statements": "TpZ",
    "remat_program_free": "vp",
    "remat_chain_new": "ipsSuP",
    "remat_chain_of_graph": "ippP",
    "remat_chain_read": "ippP",
    "remat_chain_write": "ippikp",
    "remat_chain_free": "vp",
    "remat_chain_plan": "ippslP",
    "remat_chain_plan_verify": "ipppd",
    "remat_chain_verify": "ipptzd",
    "remat_chain_digest": "sp",
    "remat_chain_name": "sp",
    "remat_chain_n_stages": "up",
    "remat_chain_stage": "Spu",
    "remat_chain_size_unit": "sp",
    "remat_chain_cost_unit": "sp",
}


def _candidates():
    here = pathlib.Path(__file__).resolve().parent
    named = os.environ.get("REMAT_LIBRARY")
    if named:
        yield named
        return
    yield str(here / "libremat.so")
    yield str(here.parents[1] / "build" / "plain" / "lib" / "libremat.so")
    installed = ctypes.util.find_library("remat")
    if installed:
        yield installed


def load() -> ctypes.CDLL:
    """The library with its prototypes; ImportError says where it was looked for."""
    tried = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            tried.append(str(error) if os.path.exists(path) else f"{path}: not there")
            continue
        library.remat_version.restype = c_char_p
        version = library.remat_version().decode()
        if tuple(int(part) for part in version.split(".")[:2]) != VERSION:
            tried.append(f"{path}: version {version}, not {VERSION[0]}.{VERSION[1]}")
            continue
        for name, letters in PROTOTYPES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = _TYPES[letters[0]], [_TYPES[letter] for letter in letters[1:]]
        library.path = path
        return library
    raise ImportError("libremat was not found (build it with `make`, or name it in REMAT_LIBRARY): " + "; ".join(tried))


lib = load()

"""Bodies that are no JSON, or JSON of a kind that cannot be stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from web.hostile.request import MARKER, Hostile, good, note, post, submit

_TEXT: Final = b'{"kind":"note","input":{"text":"%s"}}'
_WHOLE: Final = _TEXT % MARKER.encode()

NO_JSON: Final[dict[str, bytes]] = {
    "nothing": b"",
    "blanks only": b" \t\r\n ",
    "an open brace": b"{",
    "an open bracket": b"[",
    "a key alone": b'{"kind"',
    "no value": b'{"kind":}',
    "half a literal": b"nul",
    "a literal of Python": b"None",
    "a literal in capitals": b"TRUE",
    "single quotes": b"{'kind': 'note'}",
    "a bare key": b'{kind: "note"}',
    "a trailing comma": b'{"kind":"note",}',
    "a trailing comma in a list": b"[1,]",
    "a comment": b'{"kind":"note"/* MARKER-5ad1e */}',
    "a line comment": b'{"kind":"note"} // MARKER-5ad1e',
    "two values": _WHOLE + _WHOLE,
    "something behind": _WHOLE + b"x",
    "a NUL behind": _WHOLE + b"\x00",
    "a NUL alone": b"\x00",
    "a mark in front": b"\xef\xbb\xbf" + _WHOLE,
    "two marks in front": b"\xef\xbb\xbf\xef\xbb\xbf" + _WHOLE,
    "UTF-16, little": _WHOLE.decode().encode("utf-16-le"),
    "UTF-16, big": _WHOLE.decode().encode("utf-16-be"),
    "UTF-16, with a mark": _WHOLE.decode().encode("utf-16"),
    "UTF-32": _WHOLE.decode().encode("utf-32"),
    "UTF-7": b'{"kind":"note","input":{"text":"+ADw-"}}'.replace(b'"', b"+ACI-"),
    "Latin-1": _TEXT % b"caf\xe9",
    "half a sequence": _TEXT % b"\xc3(",
    "an overlong slash": _TEXT % b"\xc0\xaf",
    "an overlong NUL": _TEXT % b"\xc0\x80",
    "a surrogate in UTF-8": _TEXT % b"\xed\xa0\x80",
    "beyond Unicode": _TEXT % b"\xf4\x90\x80\x80",
    "five bytes": _TEXT % b"\xf8\x88\x80\x80\x80",
    "a cut sequence": _TEXT % b"\xe2\x82",
    "a lone continuation": _TEXT % b"\x80",
    "a plus": b'{"kind":"note","input":{"text":"x","seconds":+1}}',
    "no digit in front": b'{"kind":"note","input":{"text":"x","seconds":.5}}',
    "no digit behind": b'{"kind":"note","input":{"text":"x","seconds":1.}}',
    "a leading zero": b'{"kind":"note","input":{"text":"x","seconds":01}}',
    "a hexadecimal": b'{"kind":"note","input":{"text":"x","seconds":0x10}}',
    "half an exponent": b'{"kind":"note","input":{"text":"x","seconds":1e}}',
    "an underscore": b'{"kind":"note","input":{"text":"x","seconds":1_000}}',
    "digits of another script": '{"kind":"note","input":{"text":"x","seconds":\u0661}}'.encode(),
    "an unknown escape": _TEXT % rb"\x41",
    "an octal escape": _TEXT % rb"\101",
    "a short escape": _TEXT % rb"\u12",
    "a signed escape": _TEXT % rb"\u+123",
    "a raw newline in a string": _TEXT % b"a\nb",
    "a raw NUL in a string": _TEXT % b"a\x00b",
    "a raw escape in a string": _TEXT % b"\x1b[31m",
    "a string without end": b'{"kind":"note',
    "a form": b"kind=note&input=x",
    "XML": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    "YAML": b"kind: !!python/object/apply:os.system ['true']",
    "a pickle": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "HTML": b"<script>alert('MARKER-5ad1e')</script>",
    "JSON in a callback": b"f(" + _WHOLE + b")",
    "a guard against scripts": b")]}',\n" + _WHOLE,
    "two lines of JSON": b"{}\n{}",
    "a record separator": b"\x1e" + _WHOLE,
}

NOT_STORABLE: Final[dict[str, bytes]] = {
    "NaN": b'{"kind":"note","input":{"text":"x","seconds":NaN}}',
    "-NaN in capitals, in a list": b'{"kind":"note","input":[1,NaN]}',
    "Infinity": b'{"kind":"note","input":{"text":"x","seconds":Infinity}}',
    "-Infinity": b'{"kind":"note","input":{"text":"x","seconds":-Infinity}}',
    "1e999": b'{"kind":"note","input":{"text":"x","seconds":1e999}}',
    "-1e999": b'{"kind":"note","input":{"text":"x","seconds":-1e999}}',
    "1e400 deep inside": b'{"kind":"note","input":{"text":"x","more":[{"a":[1e400]}]}}',
    "400 digits and a point": b'{"kind":"note","input":{"text":"x","seconds":%s.0}}' % (b"9" * 400),
    "2**63": b'{"kind":"note","input":{"text":"x","seconds":9223372036854775808}}',
    "-2**63-1": b'{"kind":"note","input":{"text":"x","seconds":-9223372036854775809}}',
    "2**64": b'{"kind":"note","input":{"text":"x","seconds":18446744073709551616}}',
    "2**63 as a version": b'{"kind":"note","input":{"text":"x"},"schema_version":9223372036854775808}',
    "21 digits": b'{"kind":"note","input":{"text":"x","seconds":100000000000000000000}}',
    "400 digits": b'{"kind":"note","input":{"text":"x","seconds":%s}}' % (b"7" * 400),
    "5,000 digits": b'{"kind":"note","input":{"text":"x","seconds":%s}}' % (b"1" * 5_000),
    "200,000 digits": b'{"kind":"note","input":{"text":"x","seconds":%s}}' % (b"1" * 200_000),
    "a key twice": b'{"kind":"note","kind":"print","input":{"text":"x"}}',
    "the same key twice": b'{"kind":"note","kind":"note","input":{"text":"x"}}',
    "a key twice inside": b'{"kind":"note","input":{"text":"MARKER-5ad1e","text":"x"}}',
    "a key twice in a list": b'{"kind":"note","input":{"text":"x","more":[{"a":1,"a":2}]}}',
    "a key twice, once escaped": rb'{"kind":"note","input":{"text":"x","te\u0078t":"y"}}',
    "an empty key twice": b'{"kind":"note","input":{"":1,"":2}}',
    "NUL in a string": rb'{"kind":"note","input":{"text":"a\u0000b"}}',
    "NUL in the kind": rb'{"kind":"note\u0000","input":{"text":"x"}}',
    "NUL in a key": rb'{"kind":"note","input":{"text":"x","a\u0000":1}}',
    "NUL in a list": rb'{"kind":"note","input":["\u0000"]}',
    "a high surrogate": rb'{"kind":"note","input":{"text":"\ud800"}}',
    "a low surrogate": rb'{"kind":"note","input":{"text":"\udfff"}}',
    "a pair the wrong way round": rb'{"kind":"note","input":{"text":"\ude00\ud83d"}}',
    "a surrogate before a letter": rb'{"kind":"note","input":{"text":"\ud83dx"}}',
    "a surrogate in a key": rb'{"kind":"note","input":{"text":"x","\uDC00":1}}',
    "a surrogate in the kind": rb'{"kind":"\ud800","input":{"text":"x"}}',
    "a surrogate at the top": rb'"\ud800"',
}

NO_OBJECT: Final = ("null", "true", "0", "-1", '"text"', "[]", "[{}]", "{}", "[1,2,3]", '[{"kind":"note","input":{"text":"x"}}]')

NESTED: Final[dict[str, Callable[[], bytes]]] = {
    "33 lists": lambda: b'{"kind":"note","input":' + b"[" * 33 + b"]" * 33 + b"}",
    "33 objects": lambda: b'{"kind":"note","input":' + b'{"a":' * 33 + b"1" + b"}" * 34,
    "5,000 lists": lambda: b"[" * 5_000 + b"]" * 5_000,
    "5,000 objects": lambda: b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "100,000 lists": lambda: b"[" * 100_000 + b"]" * 100_000,
    "100,000 lists without end": lambda: b"[" * 100_000,
    "50,000 objects without end": lambda: b'{"a":' * 50_000,
    "100,000 lists, then a string": lambda: b"[" * 100_000 + b'"',
    "lists within the input": lambda: b'{"kind":"note","input":{"text":"x","more":' + b"[" * 2_000 + b"]" * 2_000 + b"}}",
    "130,000 numbers": lambda: b'{"kind":"note","input":[' + b"1," * 130_000 + b"1]}",
    "100,000 empty lists": lambda: b'{"kind":"note","input":[' + b"[]," * 90_000 + b"[]]}",
    "20,000 keys": lambda: json.dumps({"kind": "note", "input": {f"k{n}": 1 for n in range(20_000)}}).encode(),
}

TOO_LARGE: Final[dict[str, Callable[[], bytes]]] = {
    "a million keys": lambda: b'{"kind":"note","input":{' + b",".join(b'"%d":1' % n for n in range(1_000_000)) + b"}}",
    "10 MiB of text": lambda: b'{"kind":"note","input":{"text":"' + b"x" * 10 * 2**20 + b'"}}',
    "10 MiB of blanks": lambda: b" " * 10 * 2**20,
    "10 MiB of zeros": lambda: bytes(10 * 2**20),
    "a byte more than there may be": lambda: _TEXT % (b"x" * (262_144 + 16_384)),
}


def table() -> Iterator[Hostile]:
    """All of them, sent as jobs, and some as actions."""
    for why, body in NO_JSON.items():
        yield submit(f"no JSON: {why}", body, 400, "malformed_json")
    for why, body in NOT_STORABLE.items():
        yield submit(f"not storable: {why}", body, 422, "invalid")
    for text in NO_OBJECT:
        yield submit(f"no object: {text}", text.encode(), 422, "invalid")
    for why, make in NESTED.items():
        yield submit(f"nested: {why}", make, 422, "invalid")
    for why, make in TOO_LARGE.items():
        yield submit(f"too large: {why}", make, 413, "too_large")
    for why in ("an open brace", "UTF-16, little", "half a sequence", "two values"):
        yield post(f"no JSON for an action: {why}", "/v1/jobs/{question}/actions", NO_JSON[why], 400, "malformed_json")
    for why in ("NaN", "a key twice", "NUL in a string", "a high surrogate", "5,000 digits"):
        yield post(f"not storable, for an action: {why}", "/v1/jobs/{question}/actions", NOT_STORABLE[why], 422, "invalid")
    for why in ("5,000 lists", "100,000 lists"):
        yield post(f"nested, for an action: {why}", "/v1/jobs/{question}/actions", NESTED[why], 422, "invalid")
    yield post("too large for an action", "/v1/jobs/{question}/actions", TOO_LARGE["10 MiB of text"], 413, "too_large")
    yield submit("an input over its own limit", lambda: _TEXT % (b"x" * 262_144), 422, "invalid")
    yield submit("text at the limit", lambda: _TEXT % (b"x" * 262_000), 202)
    yield submit("a minus zero", note(seconds=-0.0), 202)
    yield submit("the smallest number", b'{"kind":"note","input":{"text":"x","seconds":5e-324}}', 202)
    yield submit("a number that is nothing", b'{"kind":"note","input":{"text":"x","seconds":1e-999}}', 202)
    yield submit("a pair of surrogates", rb'{"kind":"note","input":{"text":"\ud83d\ude00"}}', 202)
    yield submit("escaped backslashes before a u", rb'{"kind":"note","input":{"text":"\\u0000 \\ud800"}}', 202)
    yield submit("blanks around", b"\r\n\t " + _WHOLE + b" \n", 202)
    yield submit("members the other way round", b'{"input":{"text":"x"},"kind":"note"}', 202)
    yield submit("a null for what may be left out", good(schema_version=None, not_before=None), 202)

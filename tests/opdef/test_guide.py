"""The guide's document reads, and its rules are rules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from crosschip.opdef.constraints import FUNCTIONS, parse_rule, rules_of
from crosschip.opdef.documents import parse
from crosschip.opdef.tree import MAX_BYTES

GUIDE = (Path(__file__).parents[2] / "docs" / "opdef.md").read_text("utf-8")


def test_its_document_reads() -> None:
    (text,) = re.findall(r"```xml\n(.*?)```", GUIDE, re.DOTALL)
    (op_def,) = parse(text.encode()).collection.definitions.op_defs
    assert [constraint.text for _, constraint, _ in rules_of(op_def)] == [
        "dtype(out[0]) == dtype(in[0])"
    ]


def test_its_rules_are_rules() -> None:
    section = GUIDE.partition("## Constraints that are enforced")[2]
    rules = re.findall(r"^    (.+)$", section, re.MULTILINE)
    assert len(rules) >= 8
    for rule in rules:
        parse_rule(rule)
    assert all(f"`{function}(" in section for function in FUNCTIONS)


def test_its_limit_is_the_codes() -> None:
    assert f"at most {MAX_BYTES // 2**20} MiB" in GUIDE


def test_what_reads_documents_is_imported_late() -> None:
    """Neither crosschip nor the definitions need xmlschema."""
    code = (
        "import sys, crosschip, crosschip.opdef.documents, crosschip.cli.opdef\n"
        "assert 'xmlschema' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_xmlschema_it_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['xmlschema'] = None\n"
        "from crosschip.opdef.documents import parse\n"
        "from crosschip.ir import InputError\n"
        "try:\n    parse(b'<a/>')\n"
        "except InputError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 'pip install "crosschip[opdef]"' in done.stdout


def test_without_xmlschema_an_export_asks_no_device_before_it_says_so() -> None:
    code = (
        "import sys; sys.modules['xmlschema'] = None\n"
        "from crosschip.cli import run\n"
        "assert run(['opdef', 'export', '--device', 'reference']) == 1\n"
        "assert 'crosschip.devices.reference' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 'pip install "crosschip[opdef]"' in done.stderr

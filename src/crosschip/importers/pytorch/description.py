"""Checks of a `.pt2` file's description of its program, which PyTorch partly evaluates as code.

Sizes are Python expressions, which SymPy evaluates; operators are attributes of Python modules; and
structures of inputs can name modules to import. Only known forms of them pass.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from crosschip.ir import ModelFileError, UnsupportedError

_CPU = {"type": "cpu", "index": None}
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 2, 7: 4, 8: 8, 9: 4, 10: 8, 11: 16, 12: 1, 13: 2}
_SIZES |= {28: 2, 29: 1, 30: 1, 31: 1, 32: 1, 33: 1, 34: 4, 35: 8}
"""Bytes of an element, by the number of the type in the file (PyTorch's `ScalarType`)."""

_OPERATORS = re.compile(
    r"torch\.ops\.(aten|prims|quantized_decomposed|torchvision)\.\w+\.\w+"
    r"|torch\.ops\.higher_order\.(cond|map_impl|scan|while_loop|wrap_with_autocast"
    r"|wrap_with_set_grad_enabled)"
    r"|_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|neg|eq|ne|lt|le|gt|ge|and_|or_|not_)"
    r"|math\.(ceil|floor|trunc|sqrt)"
    r"|torch\.(_sym_sqrt|sym_float|sym_int|sym_ite|sym_max|sym_min|sym_not|sym_sum)"
)
_STRUCTURES = ("builtins.dict", "builtins.list", "builtins.tuple", "collections.OrderedDict")
_METADATA = "nn_module_stack"
"""The entry of an operation's metadata that is kept: the path of its module."""

_LONGEST = 4096
_DEEPEST = 40
_LARGEST_EXPONENT = 64
_SYMBOL = re.compile(r"[A-Za-z_]\w{0,40}")
_SIZE_NAME = re.compile(r"(s|u|f|zf|zuf)\d{1,9}|true|false|oo|int_oo|zoo")
_POWERS = ("Pow", "PowByNatural", "FloatPow")
_FUNCTIONS = frozenset(
    (
        *("Add", "Mul", "Integer", "Rational", "Float", "Max", "Min", "Abs", "Symbol", *_POWERS),
        *("And", "Or", "Not", "Eq", "Ne", "Equality", "Unequality", "GreaterThan", "LessThan"),
        *("StrictGreaterThan", "StrictLessThan", "Piecewise", "ExprCondPair", "Tuple"),
        *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt"),
        *("FloorToInt", "CeilDiv", "FloatTrueDiv", "IntTrueDiv", "TruncToFloat", "TruncToInt"),
        *("RoundToInt", "RoundDecimal", "ToFloat", "Identity", "floor", "ceiling"),
    )
)
_NODES = (
    *(ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Load, ast.keyword),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.USub),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)


def element_size(dtype: int) -> int:
    """Return the bytes of an element by the type's number in a file, at least one."""
    return _SIZES.get(dtype, 1)


def check_program(program: Any) -> Any:
    """Return the description of a program for PyTorch on this machine.

    Checks of the example inputs are left out, and so is the operations' metadata but the paths of
    their modules. All tensors are on the CPU.

    Raises:
        ModelFileError: an expression is damaged.
        UnsupportedError: the description holds what PyTorch would execute or import.
    """
    program = _checked(program)
    program["guards_code"] = []
    return program


def _checked(part: Any) -> Any:
    if isinstance(part, list):
        return [_checked(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {key: _checked_entry(key, value) for key, value in part.items()}


def _checked_entry(key: str, value: Any) -> Any:
    if key == "expr_str":
        check_expression(value)
    elif key in ("target", "as_operator") and isinstance(value, str):
        if not _OPERATORS.fullmatch(value):
            raise UnsupportedError(f"it calls {value[:80]!r}, which is no operator of PyTorch's")
    elif key in ("in_spec", "out_spec"):
        _check_structure(json.loads(value)[1])
    elif key == "as_custom_obj" or (key == "custom_obj_values" and value):
        raise UnsupportedError("it has an object of a class of its own")
    elif key in ("device", "as_device") and isinstance(value, dict):
        return _CPU
    elif key == "metadata":
        return {name: text for name, text in value.items() if name == _METADATA}
    return _checked(value)


def _check_structure(structure: Any) -> None:
    """Check a tree of inputs or outputs; PyTorch imports the modules of other classes.

    Raises:
        UnsupportedError: it has a class that is not a plain container.
    """
    kind, context = structure["type"], structure["context"]
    if kind is not None and kind not in _STRUCTURES:
        raise UnsupportedError(f"its inputs or outputs have the class {str(kind)[:80]!r}")
    keys = None if context is None else json.loads(context)
    if not (keys is None or isinstance(keys, list)) or any(
        not isinstance(key, str | int) for key in keys or ()
    ):
        raise UnsupportedError("the keys of its inputs or outputs are not texts")
    for child in structure["children_spec"]:
        _check_structure(child)


def check_expression(text: Any) -> None:
    """Check that a text is a plain arithmetic expression of sizes.

    Raises:
        ModelFileError: it is anything else.
    """
    try:
        if isinstance(text, str) and len(text) <= _LONGEST:
            _check_node(ast.parse(text.strip(), mode="eval"), 0)
            return
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        pass
    raise ModelFileError(f"is damaged: {str(text)[:80]!r} is no size")


def _check_node(node: ast.AST, depth: int) -> None:
    """Raise a `ValueError` unless a node and all below it are arithmetic of bounded cost."""
    if depth > _DEEPEST:
        raise ValueError
    match node:
        case ast.Call(func=ast.Name(id=name), args=args) if name in _FUNCTIONS:
            if name in _POWERS:
                _check_power(*args)
            if name == "Symbol" and not _is_symbol(*args):
                raise ValueError
            children: list[ast.AST] = [*args, *node.keywords]
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            _check_power(base, exponent)
            children = [base, exponent]
        case ast.Name(id=name) if _SIZE_NAME.fullmatch(name):
            children = []
        case ast.Constant(value=bool() | int() | float()):
            children = []
        case ast.Constant(value=str(text)) if re.fullmatch(r"\w{1,41}|-?[\d.e+-]{1,40}", text):
            children = []
        case _ if isinstance(node, _NODES):
            children = list(ast.iter_child_nodes(node))
        case _:
            raise ValueError
    for child in children:
        _check_node(child, depth + 1)


def _is_symbol(*args: ast.AST) -> bool:
    match args:
        case (ast.Constant(value=str(name)),):
            return _SYMBOL.fullmatch(name) is not None
    return False


def _check_power(*args: ast.AST) -> None:
    """Raise a `ValueError` unless a small number is the exponent and a size is in the base."""
    match args:
        case (
            base,
            ast.Constant(value=int(exponent))
            | ast.Call(func=ast.Name(id="Integer"), args=[ast.Constant(value=int(exponent))]),
        ) if abs(exponent) <= _LARGEST_EXPONENT and any(
            isinstance(node, ast.Name) and (node.id == "Symbol" or _SIZE_NAME.fullmatch(node.id))
            for node in ast.walk(base)
        ):
            return
    raise ValueError

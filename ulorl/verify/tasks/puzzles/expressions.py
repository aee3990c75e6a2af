"""Expressions in Python's notation, read where reasoning-gym would execute them: to sympy, or to an integer.

Invariants: only numbers, names, arithmetic and the functions below come out; nothing is evaluated but arithmetic, which
the worker's limits bound. Anything else is a ValueError.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ulorl.verify.grammar.tokens import words

MAX_CHARS = 2000
MAX_EXPONENT = 10_000
_FUNCTIONS = words(
    """exp log ln sqrt Abs sign factorial sin cos tan cot sec csc asin acos atan acot sinh cosh tanh asinh acosh atanh
    erf Ei Si Ci li Rational Integer Float"""
)
_CONSTANTS = ("pi", "E", "I", "oo")
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Invert: operator.inv,
}
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def parse(text: str, local_dict: Mapping[str, Any] | None = None, **_: object) -> Any:
    """As ``sympy.parse_expr(text, local_dict)``, without executing anything. Names that mean nothing are symbols."""
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        raise ValueError("no expression, or too long a one")
    return _value(ast.parse(text.strip(), mode="eval").body, local_dict or {})


def integer(text: str) -> int:
    """The value of an expression of integers, with the operators of bits."""
    if not isinstance(text, str) or len(text) > MAX_CHARS:
        raise ValueError("no expression, or too long a one")
    return _integer(ast.parse(text.strip(), mode="eval").body)


def _integer(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _UNARY:
            return _UNARY[type(sign)](_integer(operand))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _BINARY:
            first, second = _integer(left), _integer(right)
            if type(sign) in (ast.LShift, ast.RShift) and abs(second) > MAX_EXPONENT:
                raise ValueError("too long a shift")
            return _BINARY[type(sign)](first, second)
    raise ValueError(f"{type(node).__name__} in an expression of integers")


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    import sympy

    match node:
        case ast.Constant(value=bool() | complex()):
            raise ValueError("no number")
        case ast.Constant(value=int(number)):
            return sympy.Integer(number)
        case ast.Constant(value=float(number)):
            return sympy.Float(number)
        case ast.Name(id=name):
            if name in names:
                return names[name]
            return getattr(sympy, name) if name in _CONSTANTS else sympy.Symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, names)
        case ast.BinOp(left=left, op=sign, right=right):
            return _applied(sign, _value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS or name == "abs":
            function = sympy.Abs if name == "abs" else getattr(sympy, name)
            return function(*(_value(one, names) for one in arguments))
    raise ValueError(f"{type(node).__name__} in an expression")


def _applied(sign: ast.operator, left: Any, right: Any) -> Any:
    match sign:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case ast.Mod():
            return left % right
        case ast.Pow():
            if right.is_number and abs(right) > MAX_EXPONENT:
                raise ValueError("too large an exponent")
            return left**right
    raise ValueError(f"{type(sign).__name__} in an expression")

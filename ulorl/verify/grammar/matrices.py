"""Reads LaTeX environments: matrices with a scalar factor, another matrix as a factor, or a transpose;
determinants; rows of equations; functions by cases. Nested lists and columns are matrices too (`as_matrix`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ulorl.verify.exact import algebra
from ulorl.verify.exact.algebra import Expression, Unsupported
from ulorl.verify.grammar.normalise import ROW
from ulorl.verify.grammar.split import split, symbols
from ulorl.verify.grammar.tokens import Token, words
from ulorl.verify.grammar.values import Equation, Group, Listing, Matrix, Named, Piecewise, Scalar, Value

MATRICES = words("pmatrix bmatrix matrix array smallmatrix Bmatrix psmallmatrix bsmallmatrix")
_ROWS = words("aligned align align* gathered gather gather* split alignedat eqnarray")
_TIMES = words("times cdot *")
MAX_SIZE = 12
MAX_DETERMINANT = 4
ParseTokens = Callable[[Sequence[Token]], Value]


def parse_environment(tokens: Sequence[Token], parse_item: ParseTokens, parse_list: ParseTokens) -> Value | None:
    """The value of tokens that are one environment from \\begin to \\end, with a factor or transpose; else None."""
    begin = next((i for i, t in enumerate(tokens) if t.kind == "command" and t.text == "begin"), None)
    if begin is None:
        return None
    end = _end(tokens, begin)
    value = _read(tokens[begin:end], parse_item, parse_list)
    following = tokens[end + 1 :] if end < len(tokens) and tokens[end].text in _TIMES else tokens[end:]
    if isinstance(value, Matrix) and not begin and following and following[0].text == "begin":
        factor = parse_environment(following, parse_item, parse_list)
        return _product(value, factor) if isinstance(factor, Matrix) else None
    after = [token.text for token in tokens[end:] if token.text not in ("{", "}")]
    if after in (["^", "T"], ["^", "top"], ["^", "mathsf", "T"], ["^", "intercal"]) and isinstance(value, Matrix):
        value = Matrix(tuple(zip(*value.rows, strict=True)))
    elif after and not (after in (["]"], [")"]) and tokens[begin - 1].text in ("[", "(") and begin == 1):
        return None
    elif after:
        return value
    return _scaled(tokens[:begin], value, parse_item) if begin else value


def as_matrix(value: Value) -> Matrix | None:
    """A matrix, nested lists with rows of one length, or a tuple as a column; None for other values."""
    if isinstance(value, Matrix):
        return value
    if not isinstance(value, Group) or value.opening == "{" or not value.items:
        return None
    if {value.opening, value.closing} not in ({"(", ")"}, {"[", "]"}, {"langle", "rangle"}):
        return None
    rows = [item.items for item in value.items if isinstance(item, Group) and item.opening in "(["]
    if len(rows) == len(value.items) and len({len(row) for row in rows}) == 1:
        return Matrix(tuple(rows)) if value.opening == "[" else None
    return Matrix(tuple((item,) for item in value.items)) if not rows else None


def _end(tokens: Sequence[Token], begin: int) -> int:
    depth = 0
    for index in range(begin, len(tokens)):
        if tokens[index].kind == "command":
            depth += (tokens[index].text == "begin") - (tokens[index].text == "end")
        if depth == 0:
            closing = next((i for i in range(index, len(tokens)) if tokens[i].text == "}"), None)
            if closing is not None:
                return closing + 1
    raise Unsupported("an environment that does not end")


def _read(tokens: Sequence[Token], parse_item: ParseTokens, parse_list: ParseTokens) -> Value:
    closing = next((i for i, token in enumerate(tokens) if token.text == "}"), len(tokens))
    name = "".join(token.text for token in tokens[2:closing])
    end = max(i for i, token in enumerate(tokens) if token.kind == "command" and token.text == "end")
    if "".join(token.text for token in tokens[end + 2 : -1]) != name:
        raise Unsupported("an environment that does not end")
    body = list(tokens[closing + 1 : end])
    if name in ("array", "alignedat") and body and body[0].text == "{":
        body = body[next(i for i, token in enumerate(body) if token.text == "}") + 1 :]
    rows = [split(row, symbols("&"))[0] for row in split(body, symbols(ROW))[0] if row]
    if name == "array" and all(len(row) == 2 and _says_if(row[1]) for row in rows):
        name = "cases"
    if name in MATRICES or name in ("vmatrix", "Vmatrix"):
        try:
            cells = tuple(tuple(parse_item(cell) for cell in row) for row in rows)
        except Unsupported:
            if name != "matrix" or any(len(row) != 1 for row in rows):
                raise
            # Rows that are no values by themselves are one formula with line breaks.
            return parse_list([token for token in body if token.text != ROW])
        if not cells or len({len(row) for row in cells}) != 1 or max(len(cells), len(cells[0])) > MAX_SIZE:
            raise Unsupported("rows of different lengths")
        if all(len(row) == 1 and isinstance(row[0], Named | Equation) for row in cells):
            return Listing(tuple(row[0] for row in cells), "and")
        return Scalar(_determinant(cells)) if name == "vmatrix" else Matrix(cells)
    if name == "cases" and any(len(row) > 1 for row in rows) and not _is_system(rows):
        if any(len(row) != 2 for row in rows):
            raise Unsupported("cases without conditions")
        return Piecewise(tuple((parse_item(_bare(row[0])), parse_list(_condition(row[1]))) for row in rows))
    if name in _ROWS or name == "cases":
        items = [parse_list(_bare([token for cell in row for token in cell])) for row in rows]
        flat = tuple(part for item in items for part in (item.items if isinstance(item, Listing) else (item,)))
        return flat[0] if len(flat) == 1 else Listing(flat, "and")
    raise Unsupported(f"the environment {name}")


def _says_if(cell: Sequence[Token]) -> bool:
    return bool(cell) and cell[0].kind == "text" and cell[0].text.lower() in ("if", "for", "when")


def _is_system(rows: Sequence[Sequence[Sequence[Token]]]) -> bool:
    """``x &= 1``: the alignment mark stands before a relation."""
    return all(len(row) == 2 and row[1] and row[1][0].text in ("=", "<", ">", "le", "ge") for row in rows)


def _bare(tokens: Sequence[Token]) -> list[Token]:
    """Without a comma or period at the end."""
    kept = list(tokens)
    while kept and kept[-1].kind == "symbol" and kept[-1].text in (",", ".", ";"):
        kept.pop()
    return kept


def _condition(tokens: Sequence[Token]) -> list[Token]:
    kept = _bare(tokens)
    return kept[1:] if _says_if(kept) else kept


def _scaled(factor: Sequence[Token], value: Value, parse_item: ParseTokens) -> Value | None:
    """A scalar times a matrix."""
    tokens = list(factor)
    if tokens[-1].text in _TIMES:
        tokens.pop()
    if not isinstance(value, Matrix) or not tokens:
        return None
    if [token.text for token in tokens] == ["-"]:
        scale: Value = Scalar(algebra.number(-1))
    else:
        scale = parse_item(tokens)
    if not isinstance(scale, Scalar) or scale.unit:
        return None
    return Matrix(tuple(tuple(_times(scale.expression, cell) for cell in row) for row in value.rows))


def _product(a: Matrix, b: Matrix) -> Matrix:
    columns = list(zip(*b.rows, strict=True))
    if len(a.rows[0]) != len(b.rows):
        raise Unsupported("matrices that cannot be multiplied")
    return Matrix(tuple(tuple(Scalar(_inner(row, column)) for column in columns) for row in a.rows))


def _inner(row: Sequence[Value], column: Sequence[Value]) -> Expression:
    total = algebra.number(0)
    for x, y in zip(row, column, strict=True):
        if not isinstance(x, Scalar) or not isinstance(y, Scalar) or x.unit or y.unit:
            raise Unsupported("a product of matrices of other things than numbers")
        total = algebra.add(total, algebra.multiply(x.expression, y.expression))
    return total


def _times(factor: Expression, cell: Value) -> Value:
    if not isinstance(cell, Scalar):
        raise Unsupported("a factor before a matrix of other things than numbers")
    return Scalar(algebra.multiply(factor, cell.expression), cell.unit)


def _determinant(rows: Sequence[Sequence[Value]]) -> Expression:
    if len(rows) != len(rows[0]) or len(rows) > MAX_DETERMINANT:
        raise Unsupported("a determinant that is too large")
    entries = [[cell.expression for cell in row if isinstance(cell, Scalar)] for row in rows]
    if any(len(row) != len(rows) for row in entries):
        raise Unsupported("a determinant of other things than numbers")
    return _laplace(entries)


def _laplace(entries: list[list[Expression]]) -> Expression:
    if len(entries) == 1:
        return entries[0][0]
    total = algebra.number(0)
    for column, entry in enumerate(entries[0]):
        minor = [row[:column] + row[column + 1 :] for row in entries[1:]]
        term = algebra.multiply(entry, _laplace(minor))
        total = algebra.subtract(total, term) if column % 2 else algebra.add(total, term)
    return total

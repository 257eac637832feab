"""Compares what `math_errors --judge N` prints with mpmath (60 digits, more where numbers are huge): the largest error
of the judge in units in the last place, for each function. Needs the PyPI package mpmath."""

import math
import struct
import sys

import mpmath
from mpmath import mpf

FUNCTIONS = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpf(2) ** x,
    "exp_m1": mpmath.expm1,
    "ln": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": mpmath.log10,
    "ln_1p": mpmath.log1p,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": mpmath.sinh,
    "cosh": mpmath.cosh,
    "tanh": mpmath.tanh,
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "gamma": mpmath.gamma,
    "ln_gamma": lambda x: mpmath.loggamma(x).real if x > 0 else mpmath.log(abs(mpmath.gamma(x))),
    "sqrt": mpmath.sqrt,
    "powf": mpmath.power,
    "hypot": mpmath.hypot,
    "atan2": mpmath.atan2,
}


def number(bits):
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def error(name, arguments, found):
    """In units in the last place; None where there is nothing to compare."""
    if any(not math.isfinite(x) for x in arguments) or not math.isfinite(found):
        return None
    if name in ("gamma", "ln_gamma") and (abs(arguments[0]) > 1e6 or arguments[0] < -1000):
        return None
    if name in ("exp", "exp2", "exp_m1", "sinh", "cosh", "tanh", "erf", "erfc") and abs(arguments[0]) > 1e4:
        return None
    if name == "powf" and arguments[0] > 0 and abs(arguments[1] * math.log(arguments[0])) > 1e4:
        return None
    if name == "atan2" and 0 in arguments:
        return None  # mpmath's zero has no sign
    size = math.frexp(arguments[0])[1]
    mpmath.mp.prec = 240 + (abs(size) if name in ("sin", "cos", "tan", "exp_m1", "ln_1p", "sinh", "tanh", "asinh") else 0)
    try:
        exact = FUNCTIONS[name](*map(mpf, arguments))
    except (OverflowError, ValueError, ZeroDivisionError):
        return None
    if not isinstance(exact, mpf):
        return None
    near = abs(float(exact))
    unit = mpf(math.ulp(near)) if math.isfinite(near) else mpf(2) ** 971
    off = abs(exact - mpf(found)) / unit
    if name == "ln_gamma" and near < 1:
        off *= max(near, 1e-300)
    return float(off)


worst = {}
for line in sys.stdin:
    name, *bits = line.split()
    if name not in FUNCTIONS:
        continue
    *arguments, found = map(number, bits)
    off = error(name, arguments, found)
    if off is not None:
        count, largest, place = worst.get(name, (0, -1.0, None))
        worst[name] = (count + 1, *max((largest, place), (off, arguments), key=lambda it: it[0]))
for name, (count, largest, place) in worst.items():
    print(f"{name}: {largest:.4f} ulp at {place}, of {count}")

#!/usr/bin/env python3
"""Near-minimax polynomials of the kernels; prints coeffs.go (needs mpmath, never run by users)."""
from mpmath import mp, mpf, chebyfit, exp, log, tanh, erf, erfc, sin, cos, sqrt, pi, nstr, matrix, lu_solve
mp.dps = 140

def fit(name, f, lo, hi, n, what):
    def g(x):
        x = mpf(x)
        if abs(x) < mpf(10) ** -30:
            x = mpf(10) ** -30
        return f(x)
    c, e = chebyfit(g, [lo, hi], n, error=True)
    c = [x for x in c][::-1]
    print(f"// {name} is {what} on [{nstr(mpf(lo), 6)}, {nstr(mpf(hi), 6)}], error {nstr(e, 2)}; lowest degree first.")
    print(f"var {name} = []float64{{")
    for x in c:
        print(f"\t{nstr(x, 20, min_fixed=0, max_fixed=0)},")
    print("}\n")

def fit_weighted(name, f, w, lo, hi, n, what, shift):
    """Least squares of w*(p-f) at Chebyshev nodes, which is close enough to minimax."""
    m = 8 * n
    xs = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * k + 1) / (2 * m)) for k in range(m)]
    a, b = matrix(m, n), matrix(m, 1)
    for i, x in enumerate(xs):
        for j in range(n):
            a[i, j] = w(x) * (x - shift) ** j
        b[i] = w(x) * f(x)
    c = lu_solve(a, b)
    e = max(abs(w(x) * (sum(c[j] * (x - shift) ** j for j in range(n)) - f(x))) for x in xs)
    print(f"// {name} is {what} on [{nstr(mpf(lo), 6)}, {nstr(mpf(hi), 6)}], weighted error {nstr(e, 2)}; lowest degree first.")
    print(f"var {name} = []float64{{")
    for x in c:
        print(f"\t{nstr(x, 20, min_fixed=0, max_fixed=0)},")
    print("}\n")

print("package main\n\n// Polynomial coefficients, written by coeffs.py.\n")
h = log(2) / 2 * mpf("1.001")
ex = lambda r: (exp(r) - 1 - r) / r**2
fit("exp32", ex, -h, h, 5, "(exp(r)-1-r)/r^2")
fit("exp64", ex, -h, h, 10, "(exp(r)-1-r)/r^2")
fit("log32", lambda f: (log(1 + f) - f + f * f / 2) / f**3, mpf("-0.25"), mpf("0.5"), 9, "(log(1+f)-f+f^2/2)/f^3")
def lg(z):
    s = sqrt(abs(z)); return (log((1 + s) / (1 - s)) / s - 2) / abs(z)
fit("log64", lg, 0, mpf("0.0401"), 8, "(log((1+s)/(1-s))/s-2)/s^2 in s^2")
def th(z):
    s = sqrt(abs(z)); return (tanh(s) / s - 1) / abs(z)
fit("tanh32", th, 0, mpf("0.391"), 6, "(tanh(x)/x-1)/x^2 in x^2")
fit("tanh64", th, 0, mpf("0.391"), 12, "(tanh(x)/x-1)/x^2 in x^2")
def er(z):
    s = sqrt(abs(z)); return erf(s) / s - 1
fit("erfSmall64", er, 0, 1, 13, "erf(x)/x-1 in x^2")
fit_weighted("erfLarge64", lambda t: log(erfc(t)), erfc, mpf(1), mpf("5.95"), 18, "log(erfc(t)) in powers of t-1.5", mpf("1.5"))
def sn(z):
    s = sqrt(abs(z)); return (sin(s) / s - 1) / abs(z)
def cs(z):
    s = sqrt(abs(z)); return (cos(s) - 1 + s * s / 2) / s**4
q = (pi / 4) ** 2 * mpf("1.001")
fit("sin32", sn, 0, q, 4, "(sin(x)/x-1)/x^2 in x^2")
fit("sin64", sn, 0, q, 7, "(sin(x)/x-1)/x^2 in x^2")
fit("cos32", cs, 0, q, 3, "(cos(x)-1+x^2/2)/x^4 in x^2")
fit("cos64", cs, 0, q, 6, "(cos(x)-1+x^2/2)/x^4 in x^2")

package cpu

var here = kind{[]Level{Off, NEON}, 2}

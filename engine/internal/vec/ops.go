package vec

// UnaryOp is the code of a function of one operand.
type UnaryOp uint8

// Functions of one operand. Integers have Neg, Abs, Sign, Square and Not; Not is the complement of bits.
const (
	Neg UnaryOp = iota
	Abs
	Sign // -1, 0 or 1; keeps NaN and the sign of zero
	Sqrt
	Rsqrt
	Reciprocal
	Square
	Floor
	Ceil
	Round // half to even
	Exp
	Expm1
	Log
	Log1p
	Tanh
	Logistic
	Erf
	Sin
	Cos
	Not
	NumUnary
)

// BinaryOp is the code of a function of two operands.
type BinaryOp uint8

// Functions of two operands. Floats have Add to Pow; integers have all.
const (
	Add BinaryOp = iota
	Sub
	Mul
	Div
	Max
	Min
	Rem // sign of the dividend
	Pow
	And
	Or
	Xor
	ShiftLeft         // counts of the width or more give 0
	ShiftRight        // arithmetic for signed types
	ShiftRightLogical // fills with zeros
	NumBinary
)

// CompareOp is the code of a comparison.
type CompareOp uint8

// Comparisons. All but Ne are false when an operand is NaN.
const (
	Eq CompareOp = iota
	Ne
	Lt
	Le
	Gt
	Ge
	NumCompare
)

// Swap is the comparison with its operands exchanged.
func (c CompareOp) Swap() CompareOp { return [...]CompareOp{Eq, Ne, Gt, Ge, Lt, Le}[c] }

var unaryNames = [...]string{"neg", "abs", "sign", "sqrt", "rsqrt", "reciprocal", "square", "floor", "ceil", "round", "exp",
	"expm1", "log", "log1p", "tanh", "logistic", "erf", "sin", "cos", "not"}

var binaryNames = [...]string{"add", "sub", "mul", "div", "max", "min", "rem", "pow", "and", "or", "xor", "shiftLeft",
	"shiftRight", "shiftRightLogical"}

var compareNames = [...]string{"eq", "ne", "lt", "le", "gt", "ge"}

func (o UnaryOp) String() string   { return unaryNames[o] }
func (o BinaryOp) String() string  { return binaryNames[o] }
func (c CompareOp) String() string { return compareNames[c] }

package serve

import (
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/run/catalog"
)

// query is what a user types to choose runs: terms with spaces between them, all of which hold.
//
//	mixture                a word in the name, task, method or status; !word: not there
//	wake.epsilon=0.1       a key of the configuration, or seed, step, status, task, name; also !=
//	loglik>-2.1            the last value of a metric, a result or a key; also < >= <=
type query []term

type term struct{ key, op, value string }

// operators are tried in this order, so that ">=" is not ">".
var operators = []string{"!=", ">=", "<=", "=", ">", "<"}

func parseQuery(text string) (q query, err error) {
	for _, word := range strings.Fields(text) {
		t := term{value: strings.ToLower(word)}
		at := len(word)
		for _, op := range operators {
			if i := strings.Index(word, op); i > 0 && i < at {
				at, t = i, term{word[:i], op, word[i+len(op):]}
			}
		}
		if strings.ContainsAny(t.op, "<>") {
			if _, err := strconv.ParseFloat(t.value, 64); err != nil {
				return nil, badRequest("%q: %q is not a number", word, t.value)
			}
		}
		q = append(q, t)
	}
	return q, nil
}

// holds says whether a run, by its name, is one of those that are asked for.
func (q query) holds(name string, r catalog.Run) bool {
	for _, t := range q {
		if !t.holds(name, r) {
			return false
		}
	}
	return true
}

func (t term) holds(name string, r catalog.Run) bool {
	if t.op == "" {
		word, wanted := strings.CutPrefix(t.value, "!")
		text := strings.ToLower(strings.Join([]string{name, r.Task, r.Method, string(r.Status), r.Preset}, " "))
		return strings.Contains(text, word) != wanted
	}
	text, ok := lookUp(t.key, name, r)
	switch {
	case t.op == "=":
		return ok && same(text, t.value)
	case t.op == "!=":
		return !ok || !same(text, t.value)
	case !ok:
		return false
	}
	a, errA := strconv.ParseFloat(text, 64)
	b, _ := strconv.ParseFloat(t.value, 64)
	if errA != nil {
		return false
	}
	switch t.op {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// same compares numbers as numbers, and all else as text.
func same(a, b string) bool {
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return a == b || errA == nil && errB == nil && x == y
}

// lookUp returns what a run has for a key.
func lookUp(key, name string, r catalog.Run) (string, bool) {
	if key == "name" {
		return name, true
	}
	return r.Value(key)
}

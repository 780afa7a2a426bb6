package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// State is everything a run needs to go on from a step: the arrays, and in Extra the rest, as JSON.
type State struct {
	Step   uint64           `json:"step"`
	Arrays map[string]Array `json:"-"`
	Extra  json.RawMessage  `json:"extra,omitempty"` // kept but for insignificant space; nil if there is nothing
}

// StateHash returns the SHA-256 of everything in a state. Equal states have equal hashes, before and after they are
// saved.
func StateHash(s State) string {
	h := sha256.New()
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	// Each part goes in with its length, so that no two states feed the hash the same bytes.
	part := func(p []byte) {
		number(uint64(len(p)))
		h.Write(p)
	}
	number(s.Step)
	number(uint64(len(s.Arrays)))
	for _, name := range slices.Sorted(maps.Keys(s.Arrays)) {
		a := s.Arrays[name]
		part([]byte(name))
		part([]byte(a.DType))
		number(uint64(len(a.Shape)))
		for _, n := range a.Shape {
			number(uint64(n))
		}
		part(a.Data)
	}
	var extra bytes.Buffer
	if err := json.Compact(&extra, s.Extra); err != nil {
		// Save refuses such a state; its hash is that of the bytes as they are.
		extra.Reset()
		extra.Write(s.Extra)
	}
	part(extra.Bytes())
	return hex.EncodeToString(h.Sum(nil))
}

package run

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Values are numbers by name, which in JSON may be "NaN", "+Inf" and "-Inf".
type Values map[string]float64

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	out := make(map[string]any, len(v))
	for name, x := range v {
		if out[name] = x; math.IsNaN(x) || math.IsInf(x, 0) {
			out[name] = strconv.FormatFloat(x, 'g', -1, 64)
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(data []byte) error {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*v = Values{}
	for name, text := range in {
		var err error
		if (*v)[name], err = strconv.ParseFloat(string(unquoted(text)), 64); err != nil {
			return fmt.Errorf("value %q: %w", name, err)
		}
	}
	return nil
}

func unquoted(text []byte) []byte {
	if n := len(text); n > 1 && text[0] == '"' {
		return text[1 : n-1]
	}
	return text
}

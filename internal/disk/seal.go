package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Seal encodes v, a pointer to a struct, as JSON with its own hash, which it puts into sum, a field of v: the hash of
// the encoding while that field is empty. There is one encoding of each value, so that a sealed file is intact if and
// only if decoding and sealing it again gives the same bytes.
func Seal(v any, sum *string) ([]byte, error) {
	*sum = ""
	open, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	*sum = DigestOf(open).SHA256
	sealed, err := json.MarshalIndent(v, "", "  ")
	return append(sealed, '\n'), err
}

// Decode decodes JSON with errors that speak of the data, not of the program.
func Decode(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if other := (*json.UnmarshalTypeError)(nil); errors.As(err, &other) {
		err = fmt.Errorf("there is a JSON %s where something else belongs", other.Value)
	}
	return err
}

// Unseal decodes what Seal has written.
func Unseal(data []byte, v any, sum *string) error {
	if err := Decode(data, v); err != nil {
		return err
	}
	if sealed, err := Seal(v, sum); err != nil || !bytes.Equal(sealed, data) {
		return errors.Join(err, errors.New("does not match its own hash"))
	}
	return nil
}

// Intact reports whether Seal has written data, whatever the struct: a newer version of the program can be told from
// damage. The field with the hash must be the struct's last, and named sha256.
func Intact(data []byte) bool {
	var open bytes.Buffer
	if err := json.Compact(&open, data); err != nil {
		return false
	}
	const key, end = `"sha256":"`, `"}`
	at := strings.LastIndex(open.String(), key)
	if at < 0 {
		return false
	}
	before, sum := open.String()[:at+len(key)], open.String()[at+len(key):]
	return DigestOf([]byte(before+end)).SHA256+end == sum
}

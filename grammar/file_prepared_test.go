package grammar

import (
	"strings"
	"testing"
)

const prepared = `{"kind": "cfg", "nonterminals": ["S"], "preterminals": ["D"], "words": ["the"],
 "prepared": {"tokens": "english", "punctuation": false, "keep_case": true, "keep_numbers": false},
 "root": {"S": 1}, "binary": {"S": {"D D": 1}}, "emit": {"D": {"the": 1}}}`

// How text is to be prepared is read like everything else.
func TestBadPreparation(t *testing.T) {
	if _, err := Read(strings.NewReader(prepared), "x.json"); err != nil {
		t.Error(err)
	}
	for old, bad := range map[string]string{
		`"tokens": "english", `: ``, `"tokens": "english"`: `"tokens": "klingon"`, `"punctuation": false`: `"punctuation": 1`,
		`"keep_case"`: `"case"`,
	} {
		if _, err := Read(strings.NewReader(strings.Replace(prepared, old, bad, 1)), "x.json"); err == nil || !strings.Contains(err.Error(), "x.json:2: prepared") {
			t.Errorf("%q for %q: %v", bad, old, err)
		}
	}
}

// Package config lays what a person sets, in TOML files and by "--set key=value", over the defaults of a struct, and
// knows of every key what it means. All of that is told once, by tags of the struct's fields:
//
//	type Wake struct {
//		Epsilon float64 `toml:"epsilon" range:"0,1" help:"probability of a random action" was:"rand_prob"`
//	}
//
//	toml    the key; a nested struct is a section, whose keys are written with dots: wake.epsilon
//	help    what it means, in one line
//	range   the lowest and the highest number that it may be; inf and -inf are no limits
//	or      one more number that it may be, outside the range
//	oneof   the strings that it may be, with spaces between
//	resume  "may change" for a key that a run which is resumed may change: the checkpoint fits any value of it
//	was     what it was called once, as "old", "old: remark" or several of these with semicolons between: whoever
//	        still sets an old key learns the new one
//
// Resolve reads and checks a configuration, Encode writes it, Fields lists its keys, and a test calls Check.
package config

package catalog

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// Repeats are the keys by which repetitions of one setting differ: the seed, and the mixture's number of a data set.
var Repeats = []string{"seed", "run"}

// taskKey stands for the task of a run among the keys of its configuration.
const taskKey = "task"

// Value is what a run has for a key: "task", a key of its configuration, "seed", "step", "status", or a Figure.
func (r Run) Value(key string) (string, bool) {
	if key == taskKey {
		return r.Task, true
	}
	if v, ok := r.Config[key]; ok {
		return v, true
	}
	switch key {
	case "seed":
		return fmt.Sprint(r.Seed), true
	case "step":
		return fmt.Sprint(r.Step), true
	case "status":
		return string(r.Status), true
	}
	v, ok := r.Figure(key)
	return fmt.Sprint(v), ok
}

// Differ returns the keys of the configuration that are not the same in all runs of a task, in order, and first "task"
// if there are several tasks. Repeats are left out, and so are broken runs.
func Differ(runs []Run) []string {
	first := map[string]Run{} // of each task
	differ := map[string]bool{}
	for _, r := range runs {
		if r.Status == Broken {
			continue
		}
		f, ok := first[r.Task]
		if !ok {
			first[r.Task] = r
			continue
		}
		for _, config := range []map[string]string{f.Config, r.Config} {
			for key := range config {
				a, inA := f.Config[key]
				b, inB := r.Config[key]
				if a != b || inA != inB {
					differ[key] = true
				}
			}
		}
	}
	for _, key := range Repeats {
		delete(differ, key)
	}
	keys := sortedKeys(differ)
	if len(first) > 1 {
		keys = append([]string{taskKey}, keys...)
	}
	return keys
}

// Group is the runs of one setting.
type Group struct {
	Values []string // of the keys that were grouped by; "" for a key that the task does not have
	Runs   []Run
}

// GroupBy puts runs together that have the same values of some keys, in the order in which settings first occur. Broken
// runs are in no group.
func GroupBy(runs []Run, keys []string) (groups []Group) {
	at := map[string]int{}
	for _, r := range runs {
		if r.Status == Broken {
			continue
		}
		values := make([]string, len(keys))
		for i, key := range keys {
			if v, ok := r.Value(key); ok {
				values[i] = v
			}
		}
		id := strings.Join(values, "\x00")
		i, ok := at[id]
		if !ok {
			i = len(groups)
			at[id] = i
			groups = append(groups, Group{Values: values})
		}
		groups[i].Runs = append(groups[i].Runs, r)
	}
	return groups
}

// Label names a group by the keys that it was grouped by.
func (g Group) Label(keys []string) string {
	var parts []string
	for i, key := range keys {
		if g.Values[i] != "" {
			parts = append(parts, key+"="+g.Values[i])
		}
	}
	switch {
	case len(keys) == 0:
		return "all runs"
	case parts == nil:
		return "without " + strings.Join(keys, ", ")
	}
	return strings.Join(parts, " ")
}

// Stat is the mean of a figure over runs, and its standard deviation with the divisor N-1, NaN for one run.
type Stat struct {
	Mean, Std float64
	N         int
}

// StatOf returns that of some values.
func StatOf(values []float64) Stat {
	s := Stat{N: len(values), Mean: math.NaN(), Std: math.NaN()}
	if s.N > 0 {
		s.Mean, s.Std = stat.MeanStdDev(values, nil)
	}
	return s
}

// Figure returns a number of a run by name: its headline, a result, or the last value of a metric.
func (r Run) Figure(name string) (float64, bool) {
	if h := r.Headline; h != nil && name == h.Name {
		return h.Value, true
	}
	if v, ok := r.Results[name]; ok {
		return v, true
	}
	v, ok := r.Last[name]
	return v, ok
}

// Headline names the headline that most runs have; "" if none has one.
func Headline(runs []Run) (name string, low bool) {
	count := map[string]int{}
	for _, r := range runs {
		if h := r.Headline; h != nil {
			if count[h.Name]++; count[h.Name] > count[name] {
				name, low = h.Name, h.Low
			}
		}
	}
	return name, low
}

// Stat averages a figure, "" for the Headline, over the runs of a group that have it.
func (g Group) Stat(figure string) Stat {
	if figure == "" {
		figure, _ = Headline(g.Runs)
	}
	var values []float64
	for _, r := range g.Runs {
		if v, ok := r.Figure(figure); ok {
			values = append(values, v)
		}
	}
	return StatOf(values)
}

// Figures lists the names of results that runs have, and those of last values of metrics, each sorted.
func Figures(runs []Run) (results, last []string) {
	inResults, inLast := map[string]bool{}, map[string]bool{}
	for _, r := range runs {
		for name := range r.Results {
			inResults[name] = true
		}
		for name := range r.Last {
			inLast[name] = true
		}
	}
	return sortedKeys(inResults), sortedKeys(inLast)
}

// Band averages a metric over the runs of a group.
func (g Group) Band(metric string, points int) (Band, error) {
	var series []Series
	for _, r := range g.Runs {
		s, err := r.Series(metric)
		if err != nil {
			return Band{}, err
		}
		series = append(series, s[metric])
	}
	return BandOf(series, points), nil
}

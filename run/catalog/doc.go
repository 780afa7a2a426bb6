// Package catalog finds runs on disk and compares them, without a session of any of them: from what their folders say.
//
//	runs, err := catalog.Find("runs")                  // every run below a folder, also cells of grids
//	curves, err := runs[0].Series("e/loss", "m/loss")  // from metrics.jsonl
//	keys := catalog.Differ(runs)                       // of the configuration, apart from seeds
//	for _, g := range catalog.GroupBy(runs, keys) {    // one group for each setting; seeds are averaged
//		fmt.Println(g.Label(keys), g.Stat("loglik.gfn"))
//	}
//
// What cannot be read is said of the run that it belongs to; it hides no other run. Links are not followed, nothing is
// written, and runs may be trained meanwhile.
package catalog

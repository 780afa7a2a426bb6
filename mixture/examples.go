package mixture

// Examples are lines of the help of commands.
func (Task) Examples(of string) []string {
	switch of {
	case "":
		return []string{
			"gfnem train mixture                        a few seconds, with a report to look at",
			"gfnem train mixture --preset paper --seed 7 --out runs/paper",
		}
	case "train":
		return []string{
			"gfnem train mixture",
			"gfnem train mixture --preset best --seed 3 --out runs/best",
			"gfnem train mixture --set wake.epsilon=0.2 --set gate.e_steps=500",
			"gfnem train mixture --config my.toml --json",
		}
	case "reproduce":
		return []string{
			"gfnem reproduce mixture",
			"gfnem reproduce mixture --rows exact,meanfield,perfect          seconds",
			"gfnem reproduce mixture --rows gfn-quick --runs 10",
		}
	}
	return nil
}

// Notes are paragraphs of the help of commands.
func (Task) Notes(string) string { return "" }

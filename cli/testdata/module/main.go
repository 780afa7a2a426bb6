// Program outside trains the model.
package main

import (
	"github.com/gfnem/gfnem/cli"

	"example.com/outside/model"
)

func main() { cli.Main(model.Task) }

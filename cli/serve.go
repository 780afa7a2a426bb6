package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/serve"
)

type serveCmd struct {
	Dir    string `arg:"" optional:"" help:"Folder of runs, and of folders of runs." default:"."`
	Listen string `help:"Address to serve at. Port 0 is any that is free." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	command.Backend
	Timeout time.Duration `help:"The longest time that a question to a model may take." default:"30s"`
	Items   int           `help:"The most sentences, images or the like that a question may have." default:"1024"`
	Queue   int           `help:"The most questions that may wait." default:"256"`
	Models  int           `help:"The most models in memory." default:"4"`
}

// tokenVariable holds the token of a server: not a flag, which others on this machine could read.
const tokenVariable = "GFNEM_TOKEN"

// toAnswer is what a server that ends gives the last answers beyond their time.
const toAnswer = 5 * time.Second

// Help implements kong's detailed help.
func (serveCmd) Help() string {
	return `Examples:
  gfnem serve runs                                           then open http://127.0.0.1:8080 in a browser
  export GFNEM_TOKEN=$(openssl rand -hex 16)                 for other machines, which need the token:
  echo $GFNEM_TOKEN; gfnem serve runs --listen :8080         then open http://HOST:8080/?token=TOKEN
  curl -d '{"run":"english","sentences":["the old man slept"]}' -H 'Content-Type: application/json' \
      http://127.0.0.1:8080/api/parse

Shows all runs below a folder, with their curves, while they are trained, too; compares them by any key of the configuration;
and looks inside of models: type a sentence, draw a digit, click a point. Nothing is written.

The same can be asked over HTTP: /api/openapi.json describes it, /api/runs lists runs, /metrics is for Prometheus, /healthz says
that the server is there. What is too large, too much or too slow is refused with 413, 429 or 503.

Without a token it answers to this machine alone. SIGTERM and Ctrl-C finish what runs, and end it; twice ends it at once.`
}

// Run serves until a signal comes.
func (c serveCmd) Run(io command.Console, p *Program) error {
	for _, n := range []struct {
		flag  string
		value int
	}{{"items", c.Items}, {"queue", c.Queue}, {"models", c.Models}, {"timeout", int(c.Timeout / time.Millisecond)}} {
		if n.value < 1 {
			return badinput.Errorf("--%s must be positive", n.flag)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // so that a second signal ends the program
	o := serve.Options{
		Dir: c.Dir, Tasks: p.Tasks, Backend: c.Open, Token: os.Getenv(tokenVariable),
		Timeout: c.Timeout, Items: c.Items, Queue: c.Queue, Models: c.Models,
		Log: func(line string) { fmt.Fprintln(io.Err, line) },
	}
	return serve.Run(ctx, c.Listen, o, c.Timeout+toAnswer, func(addr string) {
		fmt.Fprintf(io.Out, "http://%s\n", addr)
	})
}

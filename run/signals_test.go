package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The first signal cancels the context, the second ends the process at once.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			cmd, _, out := startHelper(t, "signals")
			expectLine(t, out, "ready")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			expectLine(t, out, "interrupted")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			exit, ok := errors.AsType[*exec.ExitError](cmd.Wait())
			if !ok {
				t.Fatal("the second signal did not end the process")
			}
			if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != sig {
				t.Errorf("the process ended with %v", exit)
			}
		})
	}
}

func TestSignalsInProcess(t *testing.T) {
	ctx, stop := WithSignals(context.Background())
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), ErrInterrupted) {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

func TestSignalsStop(t *testing.T) {
	ctx, stop := WithSignals(context.Background())
	stop()
	stop()
	if errors.Is(context.Cause(ctx), ErrInterrupted) || ctx.Err() == nil {
		t.Errorf("stopped, the context has %v, %v", ctx.Err(), context.Cause(ctx))
	}
}

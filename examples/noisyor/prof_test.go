package main
import ("testing";"os";"flag")
func TestProf(t *testing.T){ os.Args=[]string{"x","-which","g","-iters","300"}; _ = flag.CommandLine; *fwhich="g"; *fiters=300; *fobj="tb"; main2() }

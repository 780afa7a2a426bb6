package main

import (
	"testing"

	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/lvm/lvmtest"
)

// small is a ring that can be enumerated.
var small = network{causes: 10, most: 10}

func TestLaws(t *testing.T) {
	envtest.Run(t, small.env())
	lvmtest.Run(t, small, small.env())
}

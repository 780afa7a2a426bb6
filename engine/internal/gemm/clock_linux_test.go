package gemm

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is how long this thread has run: unlike the time of day, it does not count the time others had the core.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

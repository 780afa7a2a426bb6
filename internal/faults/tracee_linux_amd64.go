package faults

import "golang.org/x/sys/unix"

func init() {
	calls[unix.SYS_NEWFSTATAT] = at("newfstatat")
	calls[unix.SYS_OPEN] = onPath("open")
	calls[unix.SYS_CREAT] = onPath("creat")
	calls[unix.SYS_STAT] = onPath("stat")
	calls[unix.SYS_LSTAT] = onPath("lstat")
	calls[unix.SYS_ACCESS] = onPath("access")
	calls[unix.SYS_CHMOD] = onPath("chmod")
	calls[unix.SYS_READLINK] = onPath("readlink")
	calls[unix.SYS_MKDIR] = onPath("mkdir")
	calls[unix.SYS_RMDIR] = onPath("rmdir")
	calls[unix.SYS_UNLINK] = onPath("unlink")
	calls[unix.SYS_RENAME] = shape{"rename", none, 0, none, 1}
	calls[unix.SYS_LINK] = shape{"link", none, 0, none, 1}
	calls[unix.SYS_SYMLINK] = shape{"symlink", none, 1, none, none}
}

// setCall changes the number of the call that a thread is about to make; -1 is no call.
func setCall(tid int, number int) error {
	return changeRegs(tid, func(r *unix.PtraceRegs) { r.Orig_rax = uint64(number) })
}

// setThird changes the third argument of the call that a thread is about to make.
func setThird(tid int, value uint64) error {
	return changeRegs(tid, func(r *unix.PtraceRegs) { r.Rdx = value })
}

// setResult changes what a thread gets from the call that was made.
func setResult(tid int, value int64) error {
	return changeRegs(tid, func(r *unix.PtraceRegs) { r.Rax = uint64(value) })
}

func changeRegs(tid int, change func(*unix.PtraceRegs)) error {
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	change(&regs)
	return unix.PtraceSetRegs(tid, &regs)
}

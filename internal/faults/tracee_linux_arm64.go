package faults

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sets of registers, of elf.h.
const (
	generalSet    = 1     // NT_PRSTATUS
	systemCallSet = 0x404 // NT_ARM_SYSTEM_CALL
)

func init() { calls[unix.SYS_FSTATAT] = at("newfstatat") }

// setCall changes the number of the call that a thread is about to make; -1 is no call.
func setCall(tid int, number int) error {
	n := int32(number)
	v := unix.Iovec{Base: (*byte)(unsafe.Pointer(&n)), Len: 4}
	_, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SETREGSET, uintptr(tid), systemCallSet,
		uintptr(unsafe.Pointer(&v)), 0, 0)
	if err != 0 {
		return err
	}
	return nil
}

// setThird changes the third argument of the call that a thread is about to make.
func setThird(tid int, value uint64) error {
	return changeRegs(tid, func(r *unix.PtraceRegsArm64) { r.Regs[2] = value })
}

// setResult changes what a thread gets from the call that was made.
func setResult(tid int, value int64) error {
	return changeRegs(tid, func(r *unix.PtraceRegsArm64) { r.Regs[0] = uint64(value) })
}

func changeRegs(tid int, change func(*unix.PtraceRegsArm64)) error {
	var regs unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(tid, generalSet, &regs); err != nil {
		return err
	}
	change(&regs)
	return unix.PtraceSetRegSetArm64(tid, generalSet, &regs)
}

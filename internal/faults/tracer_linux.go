//go:build linux && (amd64 || arm64)

package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run starts a program, follows all its threads to their end, and lets calls fail as the options say. Where the
// system does not let us follow a program, the error is errors.ErrUnsupported.
func Run(cmd *exec.Cmd, o Options) (Result, error) {
	// Only the thread that started the program may follow it. That may have other children, too: the threads of ours
	// are known by their process group.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
		return Result{}, fmt.Errorf("follow %s: %w: %w", cmd.Path, err, errors.ErrUnsupported)
	} else if err != nil {
		return Result{}, fmt.Errorf("follow %s: %w", cmd.Path, err)
	}
	t := &tracer{Options: o, pid: cmd.Process.Pid, threads: map[int]*thread{}}
	if t.Limit == 0 {
		t.Limit = time.Minute
	}
	late := make(chan struct{})
	watchdog := time.AfterFunc(t.Limit, func() {
		close(late)
		syscall.Kill(t.pid, syscall.SIGKILL)
	})
	err := t.follow()
	if !watchdog.Stop() {
		<-late
		t.result.Late = true
	}
	if err != nil {
		syscall.Kill(t.pid, syscall.SIGKILL)
		err = fmt.Errorf("follow %s: %w", cmd.Path, err)
	}
	// The program has been waited for; what remains is to read its output to the end.
	if waited := cmd.Wait(); err == nil && waited != nil && !errors.Is(waited, syscall.ECHILD) {
		err = waited
	}
	return t.result, err
}

type tracer struct {
	Options
	pid     int
	threads map[int]*thread
	result  Result
	path    string // where calls go on failing
}

// thread is what is kept of a thread between the two stops of a call.
type thread struct {
	fails syscall.Errno // what the call that it makes returns
}

func (t *tracer) follow() error {
	var status syscall.WaitStatus
	if _, err := wait(t.pid, &status); err != nil {
		return fmt.Errorf("wait for its start: %w", err)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(t.pid, options); err != nil {
		return err
	}
	t.threads[t.pid] = &thread{}
	tid, signal := t.pid, 0
	for {
		// A thread that was killed meanwhile is no longer there.
		if err := unix.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("let it go on: %w", err)
		}
		var done bool
		var err error
		if tid, signal, done, err = t.next(); done || err != nil {
			return err
		}
	}
}

// next waits until a thread stops, looks at it, and returns it with the signal that it was to get.
func (t *tracer) next() (tid, signal int, done bool, err error) {
	var status syscall.WaitStatus
	for {
		if tid, err = wait(-t.pid, &status); err != nil {
			return 0, 0, false, fmt.Errorf("wait: %w", err)
		}
		if status.Stopped() {
			break
		}
		if tid == t.pid {
			t.result.Exit, t.result.Signal = status.ExitStatus(), 0
			if status.Signaled() {
				t.result.Signal = status.Signal()
			}
			return 0, 0, true, nil
		}
		delete(t.threads, tid)
	}
	th := t.threads[tid]
	isNew := th == nil
	if isNew {
		th = &thread{}
		t.threads[tid] = th
	}
	switch s := status.StopSignal(); {
	case s == syscall.SIGTRAP|0x80:
		err = t.stopped(tid, th)
		if errors.Is(err, unix.ESRCH) {
			err = nil
		}
	case s == syscall.SIGTRAP && status.TrapCause() > 0: // a new thread
	case s == syscall.SIGSTOP && isNew: // how it begins
	default:
		signal = int(s)
	}
	return tid, signal, false, err
}

// wait waits for a process or thread, or for any of a process group, whose number is given as a negative one.
func wait(pid int, status *syscall.WaitStatus) (int, error) {
	for {
		tid, err := syscall.Wait4(pid, status, unix.WALL, nil)
		if !errors.Is(err, syscall.EINTR) {
			return tid, err
		}
	}
}

// callInfo is struct ptrace_syscall_info of linux/ptrace.h, at the entry of a call.
type callInfo struct {
	op     uint8
	_      [3]byte
	arch   uint32
	_      [2]uint64
	number uint64
	args   [6]uint64
	_      [2]uint64
}

// stopped looks at a thread that enters or leaves a call.
func (t *tracer) stopped(tid int, th *thread) error {
	var info callInfo
	if _, _, err := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0); err == unix.EIO || err == unix.EINVAL {
		return fmt.Errorf("this kernel does not say which call it is: %w", errors.ErrUnsupported)
	} else if err != 0 {
		return err
	}
	if info.op == unix.PTRACE_SYSCALL_INFO_EXIT {
		fails := th.fails
		th.fails = 0
		if fails == 0 {
			return nil
		}
		return setResult(tid, -int64(fails))
	}
	if info.op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return nil
	}
	call, ok := t.read(tid, info)
	if !ok {
		return nil
	}
	if t.Before != nil {
		t.Before(call)
	}
	t.result.Calls = append(t.result.Calls, call)
	return t.fail(tid, th, call)
}

// fail lets the newest call fail, if it is one that shall.
func (t *tracer) fail(tid int, th *thread, c Call) error {
	n, first := len(t.result.Calls), t.Fault.At
	if first == 0 || n < first {
		return nil
	}
	if n == first {
		t.path = c.Path
	}
	var hit bool
	switch t.Fault.Extent {
	case Once:
		hit = n == first
	case SamePath:
		hit = c.Path == t.path || c.To == t.path
	case Full:
		hit = c.Grows()
	}
	if !hit {
		return nil
	}
	t.result.Failed++
	if t.Fault.Errno == 0 {
		return syscall.Kill(t.pid, syscall.SIGKILL)
	}
	if t.Fault.Extent == Full && n == first && c.Writes() && c.Size > 1 {
		return setThird(tid, c.Size/2)
	}
	th.fails = t.Fault.Errno
	if c.Name == "close" {
		return nil
	}
	return setCall(tid, -1)
}

// read returns the call that a thread enters, if it is on a file below one of the folders.
func (t *tracer) read(tid int, info callInfo) (Call, bool) {
	s, ok := calls[info.number]
	if !ok || s.name == "fcntl" && !locks(info.args[1]) {
		return Call{}, false
	}
	c := Call{Name: s.name, Path: t.pathOf(tid, info, s.fd, s.path)}
	if s.secondFD != none || s.second != none {
		c.To = t.pathOf(tid, info, s.secondFD, s.second)
	}
	if c.Writes() {
		c.Size = info.args[2]
	}
	return c, t.below(c.Path) || t.below(c.To)
}

func (t *tracer) below(path string) bool {
	for _, dir := range t.Below {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// pathOf returns the path that two arguments of a call give, positions of a folder's descriptor and of a string.
func (t *tracer) pathOf(tid int, info callInfo, fd, path int) string {
	var text string
	if path != none {
		text = readString(tid, info.args[path])
		if filepath.IsAbs(text) {
			return filepath.Clean(text)
		}
	}
	from := fmt.Sprintf("/proc/%d/cwd", tid)
	if fd != none && int32(info.args[fd]) != unix.AT_FDCWD {
		from = fmt.Sprintf("/proc/%d/fd/%d", tid, int32(info.args[fd]))
	}
	dir, err := os.Readlink(from)
	if err != nil {
		return "" // a bad descriptor
	}
	return filepath.Join(strings.TrimSuffix(dir, " (deleted)"), text)
}

// readString reads a string that ends in a zero byte from a program's memory.
func readString(tid int, address uint64) string {
	var text []byte
	for len(text) < unix.PathMax {
		var word [8]byte
		n, _ := unix.PtracePeekData(tid, uintptr(address)+uintptr(len(text)), word[:])
		before, _, ended := bytes.Cut(word[:n], []byte{0})
		text = append(text, before...)
		if ended || n < len(word) {
			break
		}
	}
	return string(text)
}

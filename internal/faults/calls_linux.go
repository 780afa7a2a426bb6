//go:build linux && (amd64 || arm64)

package faults

import "golang.org/x/sys/unix"

// shape says how a system call names its files: by a descriptor, or by a path relative to the folder of a descriptor.
// A field is the position of an argument; none means that there is none.
type shape struct {
	name             string
	fd, path         int
	secondFD, second int // of a call with two paths
}

const none = -1

func onFD(name string) shape   { return shape{name, 0, none, none, none} }
func onPath(name string) shape { return shape{name, none, 0, none, none} } // relative to the working directory
func at(name string) shape     { return shape{name, 0, 1, none, none} }
func between(name string) shape {
	return shape{name, 0, 1, 2, 3}
}

// calls are those that are followed, by number.
var calls = map[uint64]shape{
	unix.SYS_CLOSE:           onFD("close"),
	unix.SYS_READ:            onFD("read"),
	unix.SYS_PREAD64:         onFD("pread64"),
	unix.SYS_READV:           onFD("readv"),
	unix.SYS_WRITE:           onFD("write"),
	unix.SYS_PWRITE64:        onFD("pwrite64"),
	unix.SYS_WRITEV:          onFD("writev"),
	unix.SYS_FSYNC:           onFD("fsync"),
	unix.SYS_FDATASYNC:       onFD("fdatasync"),
	unix.SYS_FTRUNCATE:       onFD("ftruncate"),
	unix.SYS_FALLOCATE:       onFD("fallocate"),
	unix.SYS_LSEEK:           onFD("lseek"),
	unix.SYS_FSTAT:           onFD("fstat"),
	unix.SYS_FSTATFS:         onFD("fstatfs"),
	unix.SYS_FCHMOD:          onFD("fchmod"),
	unix.SYS_GETDENTS64:      onFD("getdents64"),
	unix.SYS_FLOCK:           onFD("flock"),
	unix.SYS_FCNTL:           onFD("fcntl"), // locks alone
	unix.SYS_COPY_FILE_RANGE: {"copy_file_range", 0, none, 2, none},
	unix.SYS_STATFS:          onPath("statfs"),
	unix.SYS_TRUNCATE:        onPath("truncate"),
	unix.SYS_OPENAT:          at("openat"),
	unix.SYS_OPENAT2:         at("openat2"),
	unix.SYS_STATX:           at("statx"),
	unix.SYS_FACCESSAT:       at("faccessat"),
	unix.SYS_FACCESSAT2:      at("faccessat2"),
	unix.SYS_FCHMODAT:        at("fchmodat"),
	unix.SYS_UTIMENSAT:       at("utimensat"),
	unix.SYS_READLINKAT:      at("readlinkat"),
	unix.SYS_MKDIRAT:         at("mkdirat"),
	unix.SYS_MKNODAT:         at("mknodat"),
	unix.SYS_UNLINKAT:        at("unlinkat"),
	unix.SYS_RENAMEAT:        between("renameat"),
	unix.SYS_RENAMEAT2:       between("renameat2"),
	unix.SYS_LINKAT:          between("linkat"),
	unix.SYS_SYMLINKAT:       {"symlinkat", 1, 2, none, none},
}

// locks reports whether a call of fcntl locks a file.
func locks(command uint64) bool {
	switch command {
	case unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW:
		return true
	}
	return false
}

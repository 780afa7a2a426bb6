package disktest

import (
	"io/fs"

	"github.com/gfnem/gfnem/internal/disk"
)

// look counts an operation of reading and says whether it fails.
func (s *Shadow) look(op, path string) error {
	number := s.Reads
	s.Reads++
	if number == s.FailReadAt {
		return &fs.PathError{Op: op, Path: path, Err: s.ReadErr}
	}
	return nil
}

func (s *Shadow) ReadFile(path string) ([]byte, error) {
	if err := s.look("read", path); err != nil {
		return nil, err
	}
	return disk.OS{}.ReadFile(path)
}

func (s *Shadow) ReadDir(path string) ([]fs.DirEntry, error) {
	if err := s.look("open", path); err != nil {
		return nil, err
	}
	return disk.OS{}.ReadDir(path)
}

func (s *Shadow) Lstat(path string) (fs.FileInfo, error) {
	if err := s.look("lstat", path); err != nil {
		return nil, err
	}
	return disk.OS{}.Lstat(path)
}

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"time"
)

// file is one of an archive.
type file struct {
	name string
	data []byte
	runs bool
}

// mode is that of a file, whatever that of the machine was.
func (f file) mode() int64 {
	if f.runs {
		return 0o755
	}
	return 0o644
}

// inOrder sorts files by name.
func inOrder(files []file) []file {
	return slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) })
}

// packTar makes a .tar.gz with files in a folder, all with one time.
func packTar(folder string, at time.Time, files []file) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range inOrder(files) {
		if err := archive.WriteHeader(&tar.Header{
			Name: folder + "/" + f.name, Mode: f.mode(), Size: int64(len(f.data)), ModTime: at.UTC(), Format: tar.FormatUSTAR,
		}); err != nil {
			return nil, err
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return out.Bytes(), err
}

// packZip makes a .zip.
func packZip(folder string, at time.Time, files []file) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, f := range inOrder(files) {
		w, err := archive.CreateHeader(&zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: at.UTC()})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}

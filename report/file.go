package report

import "github.com/gfnem/gfnem/internal/disk"

// writeFile replaces the file at path by data: whoever opens it, at any moment, finds the old file or the new one.
func writeFile(path string, data []byte) error { return disk.WriteFile(path, disk.Content(data)) }

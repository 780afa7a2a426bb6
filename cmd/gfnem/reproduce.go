package main

import "context"

type reproduceCmd struct{}

// Run reproduces a table.
func (reproduceCmd) Run(ctx context.Context) error { return nil }

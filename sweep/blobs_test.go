package sweep

import (
	"bytes"
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// What no entry speaks of is removed from the server when it was seen twice, whole or half, unless it has grown.
func TestSweepBlobs(t *testing.T) {
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t)})
	defer p.Close()
	ctx := t.Context()
	put := func(name string) string {
		data := make([]byte, 2*chunkSize+1)
		b, err := p.board.upload(ctx, name, disk.DigestOf(data), bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return b.Name
	}
	chunk := func(upload string) { // of one that is not finished
		if _, err := p.board.js.Publish(ctx, p.board.chunkSubject(upload), make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	needed := put("needed")
	put("left")
	chunk("killed")
	chunk("slow")
	var seen orphans
	for pass, want := range []uint64{ // chunks and descriptions; one is of what was deleted
		3 + 1 + 3 + 1 + 1 + 2,
		3 + 1 + 1 + 3,
		3 + 1 + 1 + 4,
		3 + 1 + 1 + 4,
		3 + 1 + 1,
	} {
		var err error
		if seen, err = p.board.sweepBlobs(ctx, map[string]bool{needed: true}, seen); err != nil {
			t.Fatal(err)
		}
		if pass < 3 {
			chunk("slow")
		}
		stream, err := p.board.js.Stream(ctx, "OBJ_"+bucket(p.board.id))
		if err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(ctx)
		if err != nil || info.State.Msgs != want {
			t.Errorf("pass %d: %d messages, want %d; %v", pass, info.State.Msgs, want, err)
		}
	}
	if _, err := p.board.blobs.GetInfo(ctx, needed); err != nil {
		t.Error(err)
	}
}

// corrupt puts zeros into the place of a blob.
func (b *board) corrupt(t *testing.T, which blob) {
	t.Helper()
	ctx := context.Background()
	info, err := b.blobs.GetInfo(ctx, which.Name)
	if err != nil {
		t.Error(err)
		return
	}
	stream, err := b.js.Stream(ctx, "OBJ_"+bucket(b.id))
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(b.chunkSubject(info.NUID)))
	}
	if err == nil {
		_, err = b.js.Publish(ctx, b.chunkSubject(info.NUID), make([]byte, which.Size))
	}
	if err != nil {
		t.Error(err)
	}
}

package sweep

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// errDamaged says that a blob is not what it should be, or gone.
var errDamaged = errors.New("does not match its hash")

// send uploads what write makes, over a file in a folder for such files.
func (b *board) send(ctx context.Context, dir, name string, write func(io.Writer) error) (out blob, err error) {
	f, digest, err := spool(dir, write)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	return b.upload(ctx, name, digest, f)
}

// spool writes a temporary file and returns it, at its beginning.
func spool(dir string, write func(io.Writer) error) (_ *os.File, digest disk.Digest, err error) {
	f, err := os.CreateTemp(dir, "blob-")
	if err != nil {
		return nil, digest, err
	}
	sum := sha256.New()
	if err = write(io.MultiWriter(f, sum)); err == nil {
		digest.Size, err = f.Seek(0, io.SeekCurrent)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, digest, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	digest.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return f, digest, nil
}

// download downloads a blob to a temporary file in a folder, and returns it at its beginning. Its error wraps errDamaged
// if the blob is at fault.
func (b *board) download(ctx context.Context, dir string, from blob) (*os.File, error) {
	f, digest, err := spool(dir, func(w io.Writer) error {
		info, err := b.blobs.GetInfo(ctx, from.Name)
		if err == nil {
			err = b.whole(ctx, info, from.Digest)
		}
		if err != nil {
			return err
		}
		in, err := b.blobs.Get(ctx, from.Name)
		if err == nil {
			_, err = io.Copy(w, in)
			err = errors.Join(err, in.Close())
		}
		return err
	})
	switch {
	case errors.Is(err, errDamaged), errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrDigestMismatch):
		return nil, fmt.Errorf("%s %w", from.Name, errDamaged)
	case err != nil:
		return nil, fmt.Errorf("download %s: %w", from.Name, boardError(err))
	case digest != from.Digest:
		return nil, errors.Join(fmt.Errorf("%s %w", from.Name, errDamaged), f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

// fetch downloads a blob, over a file in a folder for such files, and unpacks it to a new folder once all of it is
// verified. Its error wraps errDamaged or run.ErrUnpack if the blob is at fault; then there is no such folder.
func (b *board) fetch(ctx context.Context, dir string, from blob, to string) (err error) {
	f, err := b.download(ctx, dir, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if err := run.Unpack(f, to); errors.Is(err, run.ErrUnpack) {
		return errors.Join(fmt.Errorf("%s: %w", from.Name, err), os.RemoveAll(to))
	} else if err != nil {
		return &fs.PathError{Op: "unpack", Path: to, Err: err}
	}
	return nil
}

// chunkSubject is where the chunks of an object lie; "" instead of its number begins those of all.
func (b *board) chunkSubject(number string) string { return "$O." + bucket(b.id) + ".C." + number }

const chunkSize = 256 << 10

// upload stores a file, under a name with its hash, as the client library does it, but chunk after chunk: that one
// sends them ahead, and can leave a goroutine behind.
func (b *board) upload(ctx context.Context, name string, digest disk.Digest, content io.Reader) (out blob, err error) {
	out = blob{Name: name + "/" + digest.SHA256, Digest: digest}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: out.Name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkSize}},
		Bucket:     bucket(b.id), NUID: rand.Text(), Size: uint64(digest.Size),
	}
	if there, err := b.blobs.GetInfo(ctx, out.Name); err == nil && b.whole(ctx, there, digest) == nil {
		return out, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("upload %s: %w", name, boardError(err))
		}
	}()
	sum, chunk := sha256.New(), make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(content, chunk)
		if err == io.EOF {
			break
		} else if err != nil && err != io.ErrUnexpectedEOF {
			return out, err
		}
		sum.Write(chunk[:n])
		info.Chunks++
		if _, err := b.js.Publish(ctx, b.chunkSubject(info.NUID), chunk[:n]); err != nil {
			return out, err
		}
	}
	info.Digest = jetstream.GetObjectDigestValue(sum)
	data, err := json.Marshal(info)
	if err != nil {
		return out, err
	}
	about := nats.NewMsg("$O." + bucket(b.id) + ".M." + base64.URLEncoding.EncodeToString([]byte(out.Name)))
	about.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	about.Data = data
	_, err = b.js.PublishMsg(ctx, about)
	return out, err
}

// whole returns an error unless all chunks of an object are there, for reading waits for those that are not.
func (b *board) whole(ctx context.Context, info *jetstream.ObjectInfo, want disk.Digest) error {
	stream, err := b.js.Stream(ctx, "OBJ_"+bucket(b.id))
	if err != nil {
		return err
	}
	subject := b.chunkSubject(info.NUID)
	state, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return err
	}
	if info.Size != uint64(want.Size) || state.State.Subjects[subject] != uint64(info.Chunks) {
		return errDamaged
	}
	return nil
}

// drop deletes blobs that nobody needs any more. That it may fail is no harm: sweepBlobs comes later.
func (b *board) drop(ctx context.Context, blobs ...*blob) {
	for _, one := range blobs {
		if one != nil && !one.isLeft() {
			_ = b.blobs.Delete(ctx, one.Name)
		}
	}
}

// orphans are objects that nobody speaks of, and chunks of none, with their number.
type orphans map[string]uint64

// sweepBlobs deletes what is in the object store although nobody speaks of it, and chunks that an upload has left when
// its worker was killed. What it has not seen before, or seen growing, it only remembers: it may be on its way.
func (b *board) sweepBlobs(ctx context.Context, needed map[string]bool, seen orphans) (next orphans, err error) {
	objects, err := b.blobs.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, boardError(err)
	}
	next = make(orphans)
	whole := make(map[string]bool)
	for _, o := range objects {
		whole[o.NUID] = true
		if needed[o.Name] {
			continue
		}
		if _, ok := seen[o.Name]; ok {
			b.drop(ctx, &blob{Name: o.Name})
		} else {
			next[o.Name] = uint64(o.Chunks)
		}
	}
	chunks := b.chunkSubject("")
	stream, err := b.js.Stream(ctx, "OBJ_"+bucket(b.id))
	if err != nil {
		return nil, boardError(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(chunks+">"))
	if err != nil {
		return nil, boardError(err)
	}
	for subject, n := range info.State.Subjects {
		switch {
		case whole[strings.TrimPrefix(subject, chunks)]:
		case seen[subject] == n:
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
				return nil, boardError(err)
			}
		default:
			next[subject] = n
		}
	}
	return next, nil
}

// packPath writes a file or a folder of files as a tar file, below its own name.
func packPath(path string, w io.Writer) error {
	base := filepath.Base(path)
	path, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return badinput.Errorf("%w", err)
	} else if err != nil {
		return err
	}
	return packFiles(path, base, w)
}

// packFiles writes a file, or those of a folder, as a tar file, below a name.
func packFiles(path, name string, w io.Writer) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if !e.Type().IsRegular() {
			return badinput.Errorf("%s is neither a file nor a folder, and cannot be sent to workers", at)
		}
		data, err := disk.ReadFile(at)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		return run.AddFile(out, filepath.ToSlash(filepath.Join(name, below)), data)
	})
	return errors.Join(err, out.Close())
}

// referred are the names of blobs that entries and jobs speak of.
func referred(entries map[string]entry, jobs []job) map[string]bool {
	names := make(map[string]bool)
	for e := range maps.Values(entries) {
		for _, b := range []*blob{e.Checkpoint, e.Result} {
			if b != nil {
				names[b.Name] = true
			}
		}
	}
	for j := range slices.Values(jobs) {
		for b := range maps.Values(j.Data) {
			names[b.Name] = true
		}
	}
	return names
}

package serve

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

var (
	errFull    = errors.New("too much is being asked at once: try again later")
	errStreams = errors.New("too many clients listen to events: try again later")
)

// bodies are the requests that are being read or answered, in bytes.
type bodies struct {
	most  int64 // of all together
	taken atomic.Int64
}

// read reads a request of so many bytes at most. The bytes count until done is called, also if there is an error. That
// a request breaks off or does not come in time is no mistake of ours.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, most int64) (body []byte, done func(), err error) {
	size := r.ContentLength
	if size < 0 { // it does not say
		size = most
	}
	done = func() {}
	if size > most {
		return nil, done, badRequest("read the request: %w", &http.MaxBytesError{Limit: most})
	}
	if b.taken.Add(size) > b.most {
		b.taken.Add(-size)
		return nil, done, errFull
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		err = badRequest("read the request: %w", err)
	}
	left := int64(len(body))
	b.taken.Add(left - size)
	return body, func() { b.taken.Add(-left) }, err
}

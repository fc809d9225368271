package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// feed is a request's body on its way upstream. The exchange sends chunks, the transport reads them through a feedReader.
// As long as no more than limit bytes have been read it keeps them, for a next attempt begins at the beginning.
type feed struct {
	ctx       context.Context
	limit     int
	announced []string // names of trailers that the client's headers have told
	chunks    chan []byte

	trailers hostsim.Headers // written before chunks is closed

	mu    sync.Mutex // held while a reader waits for a chunk
	kept  []byte     // what was read last, and all of it while start is 0
	start int        // the position of kept in the body
	ended bool
}

func newFeed(ctx context.Context, limit int, announced []string) *feed {
	return &feed{ctx: ctx, limit: limit, announced: announced, chunks: make(chan []byte)}
}

// end says that the body is complete.
func (f *feed) end(trailers hostsim.Headers) {
	f.trailers = trailers
	close(f.chunks)
}

// whole reports whether a further attempt would find the whole body. Readers must be closed.
func (f *feed) whole() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.start == 0
}

// add takes in the next chunk, which is the feed's from now on.
func (f *feed) add(chunk []byte) {
	switch {
	case len(f.kept) == 0:
		f.kept = chunk
	case f.start == 0 && len(f.kept)+len(chunk) <= f.limit:
		f.kept = append(f.kept, chunk...)
	default:
		f.start += len(f.kept)
		f.kept = chunk
	}
}

// reader is the body for one attempt. The one before must be closed.
func (f *feed) reader(r *http.Request) *feedReader {
	r.Trailer = http.Header{} // not nil, so that HTTP/1 sends names too that no header has announced
	for _, name := range f.announced {
		r.Trailer[name] = nil
	}
	return &feedReader{feed: f, trailer: r.Trailer, closed: make(chan struct{})}
}

// feedReader is the body of one attempt, as the transport reads it.
type feedReader struct {
	feed    *feed
	at      int // position in the body
	trailer http.Header
	once    sync.Once
	closed  chan struct{}
}

var errClosed = errors.New("gateway: the attempt is over")

func (r *feedReader) Read(p []byte) (int, error) {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for r.at == f.start+len(f.kept) {
		if f.ended {
			fromHeaders(r.trailer, f.trailers, "")
			return 0, io.EOF
		}
		select {
		case chunk, ok := <-f.chunks:
			if ok {
				f.add(chunk)
			}
			f.ended = !ok
		case <-r.closed:
			return 0, errClosed
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
	n := copy(p, f.kept[r.at-f.start:])
	r.at += n
	return n, nil
}

// Close ends a Read that waits.
func (r *feedReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

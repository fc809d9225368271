package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

var errRecording = errors.New("validate: not a recording")

// row is one request and how many of its prompt's tokens the engine found in its cache.
type row struct{ Session, Turn, Prompt, Output, Cached int }

// recording is what an engine answered to a campaign.
type recording struct {
	settings
	// Campaign is its name.
	Campaign string `json:"campaign"`
	// Preemptions counts how often a request lost its blocks.
	Preemptions int `json:"preemptions"`
	// Rows are in the order in which the requests were sent.
	Rows []row `json:"-"`
}

// path is where recordings of an engine and a campaign are kept, below folder.
func (r *recording) path(folder string) string {
	return filepath.Join(folder, r.Name+"."+r.Campaign+".jsonl")
}

// write writes the header as one JSON object, and each request as one array: session, turn, prompt, output, cached.
func (r *recording) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	f, err := os.Create(r.path(folder))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	header, err := json.Marshal(r)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", header)
	for _, x := range r.Rows {
		fmt.Fprintf(w, "[%d,%d,%d,%d,%d]\n", x.Session, x.Turn, x.Prompt, x.Output, x.Cached)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// read reads what write has written. Errors: errRecording, or the file's.
func (r *recording) read(folder string) error {
	f, err := os.Open(r.path(folder))
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(f)
	if err := d.Decode(r); err != nil {
		return fmt.Errorf("%w: %s: %w", errRecording, f.Name(), err)
	}
	r.Rows = nil
	for {
		var x [5]int
		err := d.Decode(&x)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %s: request %d: %w", errRecording, f.Name(), len(r.Rows)+1, err)
		}
		r.Rows = append(r.Rows, row{x[0], x[1], x[2], x[3], x[4]})
	}
}

// fits says whether the recording is one of that campaign's requests on that engine.
func (r *recording) fits(e settings, c campaign) error {
	e.Version = r.Version
	if r.settings != e || r.Campaign != c.name {
		return fmt.Errorf("%w of %s on %v: it is one of %s on %v", errRecording, c.name, e, r.Campaign, r.settings)
	}
	requests := 0
	var err error
	c.each(func(i int, q *request) {
		if want := (row{q.Session, q.Turn, q.Prompt, q.Output, 0}); i < len(r.Rows) && err == nil {
			got := r.Rows[i]
			if got.Cached = 0; got != want {
				err = fmt.Errorf("%w of these requests: number %d is %v, now %v", errRecording, i, got, want)
			}
		}
		requests++
	})
	if err == nil && requests != len(r.Rows) {
		err = fmt.Errorf("%w of these requests: it has %d, now %d", errRecording, len(r.Rows), requests)
	}
	return err
}

package main

import (
	"fmt"
	"io"
	"math"
	"math/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	header     = `<?xml version="1.0" encoding="UTF-8"?>`
	modified   = "2024-01-02T03:04:05.000Z"
	pieceBytes = 32_000
)

// stub has every object of the bucket `legacy` whose key ends in .png, and remembers which other keys were written.
type stub struct {
	latency, sigma float64
	body           []byte
	etag           string
	keys           int
	pieces         sync.Pool
	written        sync.Map // paths, each with the ETag that was told
	partETags      sync.Map // by size: all bytes are equal
	uploads        atomic.Int64
	objects        atomic.Int64 // that were written
}

func newStub(latency, sigma float64, body []byte, keys int) *stub {
	s := &stub{latency: latency, sigma: sigma, body: body, etag: quote(body), keys: keys}
	s.pieces.New = func() any { piece := make([]byte, pieceBytes); return &piece }
	return s
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_stats" {
		fmt.Fprintf(w, `{"objects":%d}`, s.objects.Load())
		return
	}
	sent := s.receive(r)
	s.wait()
	w.Header().Set("Server", "stub")
	w.Header().Set("x-amz-request-id", "AB12")
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case key == "":
		s.list(w, r)
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		s.write(w, r, sent)
	case r.Method == http.MethodDelete:
		s.remove(w, r)
	default:
		s.read(w, r)
	}
}

// sent is what came in the body of a request: its size, and its text where it is a document.
type sent struct {
	size int64
	text string
}

// receive reads the body piece by piece.
func (s *stub) receive(r *http.Request) sent {
	if r.Method == http.MethodPost {
		text, _ := io.ReadAll(r.Body)
		return sent{int64(len(text)), string(text)}
	}
	piece := s.pieces.Get().(*[]byte)
	defer s.pieces.Put(piece)
	var size int64
	for {
		read, err := r.Body.Read(*piece)
		size += int64(read)
		if err != nil {
			break
		}
	}
	// In pieces with checksums, as over TLS, the body says apart how long the object is.
	if told, err := strconv.ParseInt(r.Header.Get("x-amz-decoded-content-length"), 10, 64); err == nil {
		size = told
	}
	return sent{size: size}
}

// wait sleeps for the latency of one answer.
func (s *stub) wait() {
	if s.latency > 0 {
		time.Sleep(time.Duration(s.latency * math.Exp(s.sigma*rand.NormFloat64()) * float64(time.Millisecond)))
	}
}

// find returns the ETag of an object, and whether there is one.
func (s *stub) find(path string) (string, bool) {
	if etag, isThere := s.written.Load(path); isThere {
		return etag.(string), true
	}
	return s.etag, strings.HasPrefix(path, "/legacy/") && strings.HasSuffix(path, ".png")
}

// read answers HEAD and GET of an object, or of a range of its bytes.
func (s *stub) read(w http.ResponseWriter, r *http.Request) {
	etag, isThere := s.find(r.URL.Path)
	if !isThere {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	headers, body, status := w.Header(), s.body, http.StatusOK
	var first, last int
	if count, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &first, &last); count == 2 && first < len(body) {
		last = min(last, len(body)-1)
		headers.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(body)))
		body, status = body[first:last+1], http.StatusPartialContent
	}
	headers.Set("ETag", etag)
	headers.Set("Content-Type", "image/png")
	headers.Set("Content-Length", strconv.Itoa(len(body)))
	headers.Set("Accept-Ranges", "bytes")
	headers.Set("Last-Modified", "Tue, 02 Jan 2024 03:04:05 GMT")
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	for len(body) > 0 {
		size, err := w.Write(body[:min(pieceBytes, len(body))])
		if err != nil {
			return
		}
		body = body[size:]
	}
}

// list answers for a bucket: its place, or the keys of a prefix; only `legacy` shows any.
func (s *stub) list(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	if asked.Has("location") {
		answer(w, http.StatusOK, "<LocationConstraint>us-east-1</LocationConstraint>")
		return
	}
	first, most, keys := 1, 1000, 0
	if strings.Trim(r.URL.Path, "/") == "legacy" && strings.HasPrefix("image/", asked.Get("prefix")) {
		keys = s.keys
	}
	for _, name := range []string{"continuation-token", "start-after", "marker"} {
		if _, err := fmt.Sscanf(asked.Get(name), "image/%d.png", &first); err == nil {
			first++
			break
		}
	}
	if count, err := strconv.Atoi(asked.Get("max-keys")); err == nil {
		most = count
	}
	last := min(keys, first+most-1)
	var found strings.Builder
	fmt.Fprintf(&found, "<ListBucketResult><IsTruncated>%v</IsTruncated><KeyCount>%d</KeyCount>", last < keys, max(0, last-first+1))
	if last < keys {
		fmt.Fprintf(&found, "<NextContinuationToken>image/%09d.png</NextContinuationToken>", last)
	}
	for number := first; number <= last; number++ {
		fmt.Fprintf(&found, "<Contents><Key>image/%09d.png</Key><LastModified>%s</LastModified><ETag>%s</ETag><Size>%d</Size></Contents>", number, modified, escape(s.etag), len(s.body))
	}
	answer(w, http.StatusOK, found.String()+"</ListBucketResult>")
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(header)+len(body)))
	w.WriteHeader(status)
	io.WriteString(w, header+body)
}

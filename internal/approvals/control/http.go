package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// MaxRequest is how many bytes the body of a request may have.
const MaxRequest = 64 << 10

// StatusOf returns the HTTP status for a problem of a code.
func StatusOf(p queue.CodeProblem) int {
	switch p {
	case queue.CodeUnknown:
		return http.StatusNotFound
	case queue.CodeForbidden:
		return http.StatusForbidden
	case queue.CodeAnswered, queue.CodeGone:
		return http.StatusConflict
	case queue.CodeExpired, queue.CodeWithdrawn:
		return http.StatusGone
	default:
		return http.StatusBadRequest
	}
}

// ReadJSON reads one JSON object with the keys of into, and nothing else. If it
// reports false, it has already answered.
func ReadJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	if !IsType(r, "application/json") {
		Fail(w, http.StatusUnsupportedMediaType, ProblemInvalid, "the body must be application/json")
		return false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequest))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		Fail(w, http.StatusRequestEntityTooLarge, ProblemInvalid, "the body is too large")
		return false
	}
	if err == nil {
		err = decode(body, into)
	}
	if err != nil {
		Fail(w, http.StatusBadRequest, ProblemInvalid, "the body is not what is expected here: "+safetext.Line(err.Error()))
		return false
	}
	return true
}

// decode decodes an object that can be read in one way only: encoding/json takes the last
// of two values with one key, and does not mind the case of letters.
func decode(body []byte, into any) error {
	n, wrong := strictjson.Parse(body)
	if wrong != nil {
		return wrong
	}
	for _, m := range n.Members {
		if strings.Trim(m.Key, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return fmt.Errorf("unknown key %q", m.Key)
		}
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// IsType reports whether the body has the media type want.
func IsType(r *http.Request, want string) bool {
	got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && got == want
}

// Answer sends a value.
func Answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// Fail sends a [Failure].
func Fail(w http.ResponseWriter, status int, problem, message string) {
	var f Failure
	f.Error.Problem, f.Error.Message = problem, message
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f)
}

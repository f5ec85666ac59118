package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deeply JSON may be nested: more than anyone needs, and few enough
// levels for recursion to be harmless.
const maxDepth = 100

// maxValues bounds the number of values. A value takes about 150 bytes, however short its
// source: 8 MiB of "1," would become 600 MiB.
const maxValues = 200_000

// maxNumber bounds the length of a number, and maxExponent its exponent: exact arithmetic
// on larger ones could use up memory.
const (
	maxNumber   = 400
	maxExponent = 400
)

// Codes of the errors of [Parse], which are stable codes of diagnostics.
const (
	CodeSyntax        = "json-syntax"         // not JSON
	CodeComment       = "json-comment"        // a comment
	CodeTrailingComma = "json-trailing-comma" // a comma before a closing bracket
	CodeDuplicateKey  = "json-duplicate-key"  // two members of an object with the same key
	CodeDepth         = "json-depth"          // nested too deeply
	CodeNumber        = "json-number"         // a number too large for exact arithmetic
	CodeSize          = "json-size"           // too many values
)

// An Error says why bytes are not valid strict JSON.
type Error struct {
	Code    string
	Offset  int
	Problem string
	Hint    string
}

func (e *Error) Error() string { return e.Problem }

// Parse parses exactly one JSON value. It is stricter than encoding/json: it refuses
// duplicate keys, invalid UTF-8 and lone surrogates, and bounds depth, numbers and the
// count of values. The caller must remove a byte order mark.
func Parse(src []byte) (*Node, *Error) {
	if !utf8.Valid(src) {
		off := 0
		for off < len(src) {
			r, size := utf8.DecodeRune(src[off:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			off += size
		}
		e := &Error{Code: CodeSyntax, Offset: off, Problem: "text is not UTF-8", Hint: "save the file as UTF-8"}
		return nil, e
	}
	r := &reader{src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	r.dec.UseNumber()
	n, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if p := r.next(false); p < len(src) {
		if e := r.notJSON(p); e != nil {
			return nil, e
		}
		return nil, &Error{CodeSyntax, p, "there is more after the JSON value", "keep one value in the file"}
	}
	return n, nil
}

type reader struct {
	src    []byte
	dec    *json.Decoder
	values int // number of values so far
}

// next returns the offset of the next token.
func (r *reader) next(inside bool) int {
	offset := int(r.dec.InputOffset())
	p := r.space(offset)
	// No separator can follow an opening bracket.
	before := bytes.TrimRight(r.src[:offset], " \t\r\n")
	opened := len(before) > 0 && (before[len(before)-1] == '{' || before[len(before)-1] == '[')
	if inside && !opened && p < len(r.src) && (r.src[p] == ',' || r.src[p] == ':') {
		p = r.space(p + 1)
	}
	return p
}

func (r *reader) space(p int) int {
	for p < len(r.src) && strings.IndexByte(" \t\r\n", r.src[p]) >= 0 {
		p++
	}
	return p
}

func (r *reader) value(depth int) (*Node, *Error) {
	start := r.next(depth > 0)
	if depth > maxDepth {
		return nil, &Error{CodeDepth, start, fmt.Sprintf("nested more than %d levels deep", maxDepth), "make it flatter"}
	}
	if r.values++; r.values > maxValues {
		return nil, &Error{CodeSize, start, fmt.Sprintf("more than %d values", maxValues), "make it smaller"}
	}
	tok, err := r.dec.Token()
	if err != nil {
		return nil, r.syntax(start, err)
	}
	n := &Node{Start: start, End: int(r.dec.InputOffset())}
	switch v := tok.(type) {
	case nil:
		n.Kind = Null
	case bool:
		n.Kind, n.Truth = Boolean, v
	case json.Number:
		n.Kind, n.Text = Number, v.String()
		if tooLarge(n.Text) {
			return nil, &Error{CodeNumber, start, "number is too large or too long", "use a string"}
		}
	case string:
		n.Kind, n.Text = Text, v
		if e := r.surrogates(n); e != nil {
			return nil, e
		}
	case json.Delim:
		var e *Error
		if v == '{' {
			n.Kind = Object
			e = r.object(n, depth)
		} else {
			n.Kind = List
			e = r.list(n, depth)
		}
		if e != nil {
			return nil, e
		}
	}
	return n, nil
}

func (r *reader) object(n *Node, depth int) *Error {
	for r.dec.More() {
		start := r.next(true)
		tok, err := r.dec.Token()
		if err != nil {
			return r.syntax(start, err)
		}
		key, ok := tok.(string)
		if !ok {
			return &Error{CodeSyntax, start, "a key must be a string", "put the key in double quotes"}
		}
		if e := r.surrogates(&Node{Start: start, End: int(r.dec.InputOffset()), Text: key}); e != nil {
			return e
		}
		if n.Get(key) != nil {
			return &Error{CodeDuplicateKey, start, fmt.Sprintf("key %q occurs twice", key), "keep one of them"}
		}
		value, e := r.value(depth + 1)
		if e != nil {
			return e
		}
		value.Parent, value.Key = n, key
		n.add(Member{key, start, value})
	}
	return r.close(n)
}

func (r *reader) list(n *Node, depth int) *Error {
	for r.dec.More() {
		value, e := r.value(depth + 1)
		if e != nil {
			return e
		}
		value.Parent, value.index = n, len(n.Items)
		n.Items = append(n.Items, value)
	}
	return r.close(n)
}

func (r *reader) close(n *Node) *Error {
	start := r.next(true)
	if _, err := r.dec.Token(); err != nil {
		return r.syntax(start, err)
	}
	n.End = int(r.dec.InputOffset())
	return nil
}

// syntax explains the decoder's error at the token that starts at p.
func (r *reader) syntax(p int, err error) *Error {
	if p >= len(r.src) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		if len(bytes.TrimSpace(r.src)) == 0 {
			return &Error{CodeSyntax, 0, "nothing in it", "write a JSON value"}
		}
		return &Error{CodeSyntax, len(r.src), "the JSON ends in the middle", "close every string, list and object"}
	}
	if e := r.notJSON(p); e != nil {
		return e
	}
	problem := err.Error()
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		problem = e.Error()
	}
	// A missing token belongs after the last one that was read. The decoder's message shows
	// which is missing; messages not matched below get a general hint.
	behind := len(bytes.TrimRight(r.src[:p], " \t\r\n,"))
	line := 1 + bytes.Count(r.src[:behind], []byte("\n"))
	switch {
	case strings.Contains(problem, "after object key:value pair"), strings.Contains(problem, "after array element"):
		where := fmt.Sprintf("at the end of line %d", line)
		if !bytes.Contains(r.src[behind:p], []byte("\n")) {
			where = fmt.Sprintf("before column %d of line %d", p-bytes.LastIndexByte(r.src[:p], '\n'), line)
		}
		return &Error{CodeSyntax, behind, "a comma is missing " + where, "put a comma there"}
	case strings.Contains(problem, "after object key"):
		return &Error{CodeSyntax, behind, fmt.Sprintf("a colon is missing after the key on line %d", line), "put a colon between the key and its value"}
	case strings.Contains(problem, "beginning of object key"), r.isBareKey(p):
		return &Error{CodeSyntax, p, "a key must be in double quotes", "put the key in double quotes"}
	case strings.Contains(problem, "in string literal"):
		return &Error{CodeSyntax, p, fmt.Sprintf("the text that begins on line %d does not end on it, or holds a tab", 1+bytes.Count(r.src[:p], []byte("\n"))), `close it with ", and write \n and \t for line breaks and tabs`}
	case strings.Contains(problem, "in string escape"):
		return &Error{CodeSyntax, p, `a text holds a \ that begins no escape`, `write \\ for a backslash`}
	case strings.Contains(problem, "beginning of value"):
		return &Error{CodeSyntax, p, fmt.Sprintf("a value is missing, or not in double quotes, on line %d", 1+bytes.Count(r.src[:p], []byte("\n"))), "put texts in double quotes"}
	}
	return &Error{CodeSyntax, p, "not JSON: " + strings.TrimPrefix(problem, "json: "), "look at the brackets, commas and quotes around this place"}
}

// isBareKey reports whether the text at p begins with a letter where a key must begin.
func (r *reader) isBareKey(p int) bool {
	before := bytes.TrimRight(r.src[:p], " \t\r\n")
	c := r.src[p] | 0x20
	return 'a' <= c && c <= 'z' && (bytes.HasSuffix(before, []byte("{")) || bytes.HasSuffix(before, []byte(",")))
}

// notJSON recognises syntax of other languages at p, and returns nil if there is none.
func (r *reader) notJSON(p int) *Error {
	// The decoder stops where a value should have ended, which may be before the offending
	// byte, so skip a comma.
	c := r.src[p]
	if c == ',' {
		if q := r.space(p + 1); q < len(r.src) {
			p, c = q, r.src[q]
		}
	}
	before := bytes.TrimRight(r.src[:p], " \t\r\n")
	switch {
	case c == '/' || c == '#':
		return &Error{CodeComment, p, "JSON has no comments", "remove the comment"}
	case (c == '}' || c == ']') && bytes.HasSuffix(before, []byte(",")):
		return &Error{CodeTrailingComma, len(before) - 1, "a comma before the closing bracket", "remove the comma"}
	case c == '\'':
		return &Error{CodeSyntax, p, "strings are written with double quotes", "use \" instead of '"}
	}
	return nil
}

// surrogates refuses a string with half of a surrogate pair, since readers disagree about
// its meaning.
func (r *reader) surrogates(n *Node) *Error {
	if !strings.ContainsRune(n.Text, utf8.RuneError) {
		return nil
	}
	raw := r.src[n.Start:n.End]
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch u := hex4(raw[i+1:]); {
		case u >= 0xd800 && u < 0xdc00 && i+6 < len(raw) && raw[i+5] == '\\' && raw[i+6] == 'u':
			if low := hex4(raw[i+7:]); low >= 0xdc00 && low < 0xe000 {
				i += 10
				continue
			}
			fallthrough
		case u >= 0xd800 && u < 0xe000:
			return &Error{CodeSyntax, n.Start, "a \\u escape is half of a surrogate pair", "write the character itself"}
		}
	}
	return nil
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(b []byte) int64 {
	if len(b) < 4 {
		return -1
	}
	u, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(u)
}

// tooLarge reports whether the number literal s exceeds the bounds.
func tooLarge(s string) bool {
	if len(s) > maxNumber {
		return true
	}
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return false
	}
	exp, err := strconv.Atoi(s[i+1:])
	return err != nil || exp > maxExponent || exp < -maxExponent
}

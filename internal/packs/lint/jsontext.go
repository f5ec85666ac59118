package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// jsonTexts looks at every string of a JSON file, keys included, as it reads
// after its escapes are undone. What is no JSON is left to the parser of tools,
// which says so.
func (s *subject) jsonTexts(file string, src []byte) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	if deep(src) {
		return // which the parser of tools says as well
	}
	j := &jsonReader{s: s, file: file, src: src, dec: json.NewDecoder(bytes.NewReader(src)), lines: []int{0}}
	for i, c := range src {
		if c == '\n' {
			j.lines = append(j.lines, i+1)
		}
	}
	j.dec.UseNumber()
	_ = j.read("")
}

// maxJSONDepth is how deep values may be nested to be looked at: as deep as the
// parser of tools reads them.
const maxJSONDepth = 100

// deep reports whether brackets are nested more than maxJSONDepth deep, without
// reading the values.
func deep(src []byte) bool {
	depth, inText := 0, false
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxJSONDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// jsonReader goes through one file.
type jsonReader struct {
	s     *subject
	file  string
	src   []byte
	dec   *json.Decoder
	lines []int // offsets at which lines begin
}

// read reads one value, and looks at the strings in it.
func (j *jsonReader) read(pointer string) error {
	tok, start, err := j.next()
	if err != nil {
		return err
	}
	switch v := tok.(type) {
	case string:
		j.look(v, start, pointer)
	case json.Delim:
		for i := 0; j.dec.More(); i++ {
			at := pointer + "/" + strconv.Itoa(i)
			if v == '{' {
				key, start, err := j.next()
				if err != nil {
					return err
				}
				name, _ := key.(string)
				// Cut: every value below has this path in front of its own.
				at = pointer + strictjson.Pointer([]string{clip(name)})
				j.look(name, start, at)
			}
			if err := j.read(at); err != nil {
				return err
			}
		}
		_, err = j.dec.Token()
	}
	return err
}

// next returns the next token and the offset at which it begins.
func (j *jsonReader) next() (json.Token, int, error) {
	start := int(j.dec.InputOffset())
	for start < len(j.src) && strings.IndexByte(" \t\r\n,:", j.src[start]) >= 0 {
		start++
	}
	tok, err := j.dec.Token()
	return tok, start, err
}

func (j *jsonReader) look(value string, start int, pointer string) {
	line := sort.SearchInts(j.lines, start+1)
	j.s.look(text{
		file: j.file, line: line, column: start - j.lines[line-1] + 1, pointer: pointer,
		what: fmt.Sprintf("the text at %s", clip(pointer)), s: value,
	})
}

package strictjson

import "bytes"

// A Writer writes JSON in the order of its calls. The zero value is ready to use.
type Writer struct {
	b     bytes.Buffer
	first bool // the current object or list has members
}

// Open begins an object or a list by writing its opening bracket.
func (w *Writer) Open(bracket byte) { w.b.WriteByte(bracket); w.first = true }

// Close ends the object or list.
func (w *Writer) Close(bracket byte) { w.b.WriteByte(bracket); w.first = false }

// Item begins the next element of a list.
func (w *Writer) Item() {
	if !w.first {
		w.b.WriteByte(',')
	}
	w.first = false
}

// Key begins the next member of an object.
func (w *Writer) Key(name string) {
	w.Item()
	w.b.Write(Canonical(name))
	w.b.WriteByte(':')
}

// Value writes JSON unchanged.
func (w *Writer) Value(json []byte) { w.b.Write(json); w.first = false }

// Member writes a member of an object.
func (w *Writer) Member(name string, json []byte) {
	w.Key(name)
	w.Value(json)
}

// Bytes returns what was written.
func (w *Writer) Bytes() []byte { return w.b.Bytes() }

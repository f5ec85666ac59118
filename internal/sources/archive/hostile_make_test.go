package archive

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// A tarRaw is one entry of a tar file, whose fields may lie.
type tarRaw struct {
	name, link string
	kind       byte // '0' if it is 0
	mode       int  // 0o644 if it is 0
	body       string
	size       string // the field; "" for the body's
	prefix     string
	magic      string // "ustar\x0000" if it is ""
	sum        string // the checksum; "" for the right one
}

func (e tarRaw) block() []byte {
	h := make([]byte, 512)
	if e.kind == 0 {
		e.kind = '0'
	}
	if e.mode == 0 {
		e.mode = 0o644
	}
	if e.size == "" {
		e.size = fmt.Sprintf("%011o", len(e.body))
	}
	if e.magic == "" {
		e.magic = "ustar\x0000"
	}
	copy(h[0:100], e.name)
	copy(h[100:], fmt.Sprintf("%07o", e.mode))
	copy(h[108:], "0000000\x000000000")
	copy(h[124:136], e.size)
	copy(h[136:], "00000000000")
	h[156] = e.kind
	copy(h[157:257], e.link)
	copy(h[257:], e.magic)
	copy(h[345:500], e.prefix)
	copy(h[148:], "        ")
	if e.sum == "" {
		n := 0
		for _, b := range h {
			n += int(b)
		}
		e.sum = fmt.Sprintf("%06o\x00 ", n)
	}
	copy(h[148:156], e.sum)
	h = append(h, e.body...)
	return append(h, make([]byte, -len(h)&511)...)
}

// tarOf returns a tar file of these entries.
func tarOf(entries ...tarRaw) []byte {
	var out []byte
	for _, e := range entries {
		out = append(out, e.block()...)
	}
	return append(out, make([]byte, 1024)...)
}

// pax returns the records for the entry that follows.
func pax(records ...string) tarRaw {
	return tarRaw{name: "PaxHeaders/x", kind: 'x', body: paxBody(records...)}
}

func paxBody(records ...string) string {
	var body strings.Builder
	for _, r := range records {
		n := len(r) + 3
		for len(fmt.Sprint(n))+len(r)+2 != n {
			n++
		}
		fmt.Fprintf(&body, "%d %s\n", n, r)
	}
	return body.String()
}

func gz(data []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}

// gzBomb is data and then many MiB of zeros, in little space: the same compressed piece
// again and again.
func gzBomb(data []byte, mib int) []byte {
	var piece bytes.Buffer
	w, _ := flate.NewWriter(&piece, flate.BestCompression)
	_, _ = w.Write(make([]byte, 1<<20))
	_ = w.Flush()
	var out bytes.Buffer
	out.WriteString("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")
	w, _ = flate.NewWriter(&out, flate.BestCompression)
	_, _ = w.Write(data)
	_ = w.Flush()
	for range mib {
		out.Write(piece.Bytes())
	}
	out.WriteString("\x01\x00\x00\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00")
	return out.Bytes()
}

// A zipRaw is one entry of a zip file, whose fields may lie.
type zipRaw struct {
	name          string
	local         string // the name before the bytes; "" for the same
	body          string
	mode          uint32 // of Unix; 0o100644 if it is 0
	flags         uint16
	localFlags    uint16 // 0: flags
	packed        string // the bytes as they are in the file; "": the body
	method        uint16
	localMethod   uint16 // 0: method
	sum           uint32 // 0: the right one
	size          uint32 // unpacked; 0: the right one
	packedSize    uint32 // 0: the right one
	localSize     uint32 // unpacked, before the bytes; 0: size
	extra, lextra string
	behind        string // after the bytes
	unlisted      bool   // only before the bytes
	again         bool   // listed, with the bytes of the entry before
}

type zipTail struct {
	before, between, after, comment string
	count, disk                     uint16 // what is added to the right numbers
	list                            uint32
}

// zipOf is a zip file of these entries.
func zipOf(tail zipTail, entries ...zipRaw) []byte {
	var out, list []byte
	le := binary.LittleEndian
	out = append(out, tail.before...)
	n, last := 0, 0
	for _, e := range entries {
		if e.mode == 0 {
			e.mode = 0o100644
		}
		if e.packed == "" {
			e.packed = e.body
		}
		if e.local == "" {
			e.local = e.name
		}
		if e.sum == 0 {
			e.sum = crc32.ChecksumIEEE([]byte(e.body))
		}
		if e.size == 0 {
			e.size = uint32(len(e.body))
		}
		if e.packedSize == 0 {
			e.packedSize = uint32(len(e.packed))
		}
		if e.localSize == 0 {
			e.localSize = e.size
		}
		if e.localFlags == 0 {
			e.localFlags = e.flags
		}
		if e.localMethod == 0 {
			e.localMethod = e.method
		}
		at := len(out)
		if e.again {
			at = last
		} else {
			last = at
			out = le.AppendUint32(out, zipLocal)
			out = le.AppendUint16(out, 20)
			out = le.AppendUint16(out, e.localFlags)
			out = le.AppendUint16(out, e.localMethod)
			out = le.AppendUint32(out, 0x00210000) // 1980-01-01
			if e.flags&8 != 0 {
				out = append(out, make([]byte, 12)...)
			} else {
				out = le.AppendUint32(out, e.sum)
				out = le.AppendUint32(out, e.packedSize)
				out = le.AppendUint32(out, e.localSize)
			}
			out = le.AppendUint16(out, uint16(len(e.local)))
			out = le.AppendUint16(out, uint16(len(e.lextra)))
			out = append(append(append(append(out, e.local...), e.lextra...), e.packed...), e.behind...)
		}
		if e.unlisted {
			continue
		}
		n++
		list = le.AppendUint32(list, 0x02014b50)
		list = le.AppendUint16(list, 3<<8|20)
		list = le.AppendUint16(list, 20)
		list = le.AppendUint16(list, e.flags)
		list = le.AppendUint16(list, e.method)
		list = le.AppendUint32(list, 0x00210000)
		list = le.AppendUint32(list, e.sum)
		list = le.AppendUint32(list, e.packedSize)
		list = le.AppendUint32(list, e.size)
		list = le.AppendUint16(list, uint16(len(e.name)))
		list = le.AppendUint16(list, uint16(len(e.extra)))
		list = append(list, make([]byte, 6)...)
		list = le.AppendUint32(list, e.mode<<16)
		list = le.AppendUint32(list, uint32(at))
		list = append(append(list, e.name...), e.extra...)
	}
	out = append(out, tail.between...)
	at := len(out)
	out = append(out, list...)
	out = le.AppendUint32(out, zipEnd)
	out = le.AppendUint16(out, tail.disk)
	out = le.AppendUint16(out, 0)
	out = le.AppendUint16(out, uint16(n)+tail.count)
	out = le.AppendUint16(out, uint16(n)+tail.count)
	out = le.AppendUint32(out, uint32(len(list)))
	out = le.AppendUint32(out, uint32(at)+tail.list)
	out = le.AppendUint16(out, uint16(len(tail.comment)))
	return append(append(out, tail.comment...), tail.after...)
}

func deflated(s string) string {
	var out bytes.Buffer
	w, _ := flate.NewWriter(&out, flate.BestCompression)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return out.String()
}

// descriptor is what comes behind bytes whose size was not known before.
func descriptor(body, packed string) string {
	var out []byte
	out = binary.LittleEndian.AppendUint32(out, zipDescriptor)
	out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE([]byte(body)))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(packed)))
	return string(binary.LittleEndian.AppendUint32(out, uint32(len(body))))
}

// extraField is one field of a zip entry's extra fields.
func extraField(id uint16, data string) string {
	out := binary.LittleEndian.AppendUint16(nil, id)
	return string(binary.LittleEndian.AppendUint16(out, uint16(len(data)))) + data
}

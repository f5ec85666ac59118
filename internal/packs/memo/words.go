package memo

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"

	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
	"github.com/packs-mcp/packs-mcp/internal/private"
)

// What queries of all packs need is in a file of its own beside those of the roots. It
// begins with a magic and a checksum of everything after it. Then come its key and the
// data, which this package does not know.
const (
	wordsMagic = "packs-mcp words 1\n"
	wordsHead  = len(wordsMagic) + 4
)

// wordsFile returns the file for queries of all packs of some roots, and its key.
func (x Index) wordsFile(roots []string) (file private.File, key string) {
	all := string(packed.AppendTexts([]byte("words"), roots)) // the path of no root
	file = x.file(all)
	file.What = "the index for queries"
	return file, x.key(all, "")
}

// LoadWords returns what SaveWords wrote last for the same roots, or an error. The data
// is what the user's own programs wrote, but may be that of other packs.
func (x Index) LoadWords(roots []string) (string, error) {
	file, key := x.wordsFile(roots)
	f, info, err := file.Open() // fails if another user could have written it
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() < int64(wordsHead) || info.Size() > maxIndex {
		return "", errIndex
	}
	in := input{from: f}
	head := packed.From(in.text(wordsHead))
	in.sum = 0
	all := packed.From(in.text(int(info.Size()) - wordsHead))
	if magic := head.Bytes(len(wordsMagic)); in.err != nil || magic != wordsMagic || head.Fixed(4) != uint64(in.sum) || all.Text() != key {
		return "", cmp.Or(in.err, errIndex)
	}
	markUsed(file, info)
	return all.Rest(), nil
}

// SaveWords replaces the data for queries of all packs of some roots, unless another
// process is writing it just now. Then, and after an error, done is false.
func (x Index) SaveWords(roots []string, data []byte) (done bool, err error) {
	file, key := x.wordsFile(roots)
	done, err = file.TryLock(func() error {
		out := packed.AppendText(append(make([]byte, 0, wordsHead+len(key)+len(data)+8), wordsMagic+"sum "...), key)
		out = append(out, data...)
		binary.LittleEndian.PutUint32(out[len(wordsMagic):], crc32.ChecksumIEEE(out[wordsHead:]))
		return file.Write(out)
	})
	return done && err == nil, err
}

package approvals

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
)

// The bounds of a picture on the page. A picture of a few hundred kilobytes can have
// a billion points, which a browser draws in several gigabytes of memory.
const (
	maxPictureBytes  = 16 << 20
	maxPicturePoints = 32 << 20 // 128 MiB when drawn
)

// readPicture returns the bytes of a picture that the page shows, or why it does not.
// The bytes that were checked are the ones to send: a run can still change the file.
func readPicture(f io.Reader, about Artifact) (*bytes.Reader, error) {
	kind, _ := shownAs(about.MIME)
	tooLarge := fmt.Errorf("this picture has more than %d MiB; download it", maxPictureBytes>>20)
	if about.Size > maxPictureBytes {
		return nil, tooLarge
	}
	all, err := io.ReadAll(io.LimitReader(f, maxPictureBytes+1))
	if err != nil {
		return nil, errors.New(artifactProblem(err))
	}
	if len(all) > maxPictureBytes {
		return nil, tooLarge
	}
	width, height, err := dimensions(bytes.NewReader(all), kind)
	if err != nil || width <= 0 || height <= 0 {
		return nil, errors.New("this file is not a picture that can be shown")
	}
	if int64(width)*int64(height) > maxPicturePoints {
		return nil, fmt.Errorf("this picture has %d by %d points, which is too much to show; download it", width, height)
	}
	return bytes.NewReader(all), nil
}

// dimensions reads how large a picture says it is.
func dimensions(r io.Reader, kind string) (width, height int, err error) {
	switch kind {
	case "image/png":
		c, err := png.DecodeConfig(r)
		return c.Width, c.Height, err
	case "image/jpeg":
		c, err := jpeg.DecodeConfig(r)
		return c.Width, c.Height, err
	case "image/gif":
		c, err := gif.DecodeConfig(r)
		return c.Width, c.Height, err
	case "image/webp":
		return webpDimensions(r)
	}
	return 0, 0, errors.New("another format")
}

// webpDimensions reads the first chunk of a WebP file, which is of one of three kinds.
func webpDimensions(r io.Reader) (width, height int, err error) {
	var b [30]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, 0, err
	}
	if string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0, errors.New("not WebP")
	}
	switch string(b[12:16]) {
	case "VP8X": // 24 bits each, less one
		size := func(b []byte) int { return 1 + int(b[0]) + int(b[1])<<8 + int(b[2])<<16 }
		return size(b[24:]), size(b[27:]), nil
	case "VP8L": // a signature, then 14 bits each, less one
		bits := binary.LittleEndian.Uint32(b[21:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff), nil
	case "VP8 ": // a frame's header, then 14 bits each beside a scale
		return int(binary.LittleEndian.Uint16(b[26:])) & 0x3fff, int(binary.LittleEndian.Uint16(b[28:])) & 0x3fff, nil
	}
	return 0, 0, errors.New("not WebP")
}

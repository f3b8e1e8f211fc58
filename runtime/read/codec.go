package read

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
)

// recordBytesMax bounds what one batch may decompress to: a few hundred bytes may claim to be
// gigabytes.
const recordBytesMax = 64 << 20

var errExpands = fmt.Errorf("it decompresses to more than %d bytes", recordBytesMax)

// decompress returns what p holds, compressed by the codec.
func decompress(codec kbatch.Codec, magic int8, p []byte) ([]byte, error) {
	switch codec {
	case kbatch.None:
		return p, nil
	case kbatch.Gzip:
		r, err := gzip.NewReader(bytes.NewReader(p))
		if err != nil {
			return nil, err
		}
		return readBounded(r)
	case kbatch.Snappy:
		return unsnappy(p)
	case kbatch.LZ4:
		if magic == 0 {
			p = mendLZ4(p)
		}
		return readBounded(lz4.NewReader(bytes.NewReader(p)))
	case kbatch.Zstd:
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(recordBytesMax))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.DecodeAll(p, nil)
	}
	return nil, fmt.Errorf("codec %s is not known", codec)
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, recordBytesMax+1))
	if err == nil && len(data) > recordBytesMax {
		err = errExpands
	}
	return data, err
}

// xerial begins what snappy-java writes: a header of 16 bytes, then blocks, each after its length.
var xerial = []byte{130, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeaderBytes = 16

func unsnappy(p []byte) ([]byte, error) {
	if !bytes.HasPrefix(p, xerial) || len(p) < xerialHeaderBytes {
		return unsnappyBlock(nil, p)
	}
	var out []byte
	for p = p[xerialHeaderBytes:]; len(p) > 0; {
		if len(p) < 4 {
			return nil, io.ErrUnexpectedEOF
		}
		n := int64(binary.BigEndian.Uint32(p))
		if p = p[4:]; n > int64(len(p)) {
			return nil, io.ErrUnexpectedEOF
		}
		var err error
		if out, err = unsnappyBlock(out, p[:n]); err != nil {
			return nil, err
		}
		p = p[n:]
	}
	return out, nil
}

func unsnappyBlock(out, p []byte) ([]byte, error) {
	n, err := s2.DecodedLen(p)
	if err == nil && len(out)+n > recordBytesMax {
		err = errExpands
	}
	if err != nil {
		return nil, err
	}
	block, err := s2.Decode(nil, p)
	return append(out, block...), err
}

// mendLZ4 gives a frame of magic 0 the header checksum that the format wants: Kafka's clients of
// that time made it of the frame's magic number too (KAFKA-3160).
func mendLZ4(p []byte) []byte {
	const magicBytes, flagSize = 4, 0x08
	if len(p) < magicBytes+3 {
		return p
	}
	n := 2 // flags and block descriptor
	if p[magicBytes]&flagSize != 0 {
		n += 8
	}
	if len(p) <= magicBytes+n {
		return p
	}
	mended := bytes.Clone(p)
	mended[magicBytes+n] = byte(xxh32(p[magicBytes:magicBytes+n]) >> 8)
	return mended
}

// xxh32 is XXH32 with the seed 0 of fewer than 16 bytes.
func xxh32(p []byte) uint32 {
	const prime1, prime2, prime3, prime4, prime5 uint32 = 2654435761, 2246822519, 3266489917,
		668265263, 374761393
	rotate := func(v uint32, by int) uint32 { return v<<by | v>>(32-by) }
	h := prime5 + uint32(len(p))
	for ; len(p) >= 4; p = p[4:] {
		h = rotate(h+binary.LittleEndian.Uint32(p)*prime3, 17) * prime4
	}
	for _, b := range p {
		h = rotate(h+uint32(b)*prime5, 11) * prime1
	}
	h = (h ^ h>>15) * prime2
	h = (h ^ h>>13) * prime3
	return h ^ h>>16
}

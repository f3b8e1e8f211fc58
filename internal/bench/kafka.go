package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// What producers and brokers commonly make: batches of 16 KiB with records of 1 KiB, an entry in
// the indexes at most every 4 KiB of the log.
const (
	recordsPerBatch   = 16
	valueBytes        = 1 << 10
	indexIntervalSize = 4 << 10
	firstTimestamp    = 1_700_000_000_000 // milliseconds since the Unix epoch
)

// kafkaSegments fills a source with a broker's log directory: partitions of n closed segments each,
// with their indexes, and the checkpoints that say that all is replicated and flushed.
func kafkaSegments(partitions, n int, size int64) func(*source) error {
	return func(s *source) error {
		noise := rand.NewChaCha8([32]byte{1})
		var end int64
		for p := range partitions {
			dir, err := s.log(fmt.Sprintf("orders-%d", p))
			if err != nil {
				return err
			}
			end = 0
			for range n {
				if end, err = writeSegment(dir, end, size, noise); err != nil {
					return err
				}
			}
		}
		if err := s.count(); err != nil {
			return err
		}
		for _, dir := range s.logs {
			if err := s.active(dir, end); err != nil {
				return err
			}
		}
		return errors.Join(
			os.WriteFile(filepath.Join(s.dir, "meta.properties"), []byte("version=0\n"), 0o666),
			checkpoint(s.dir, "replication-offset-checkpoint", "orders", partitions, end),
			checkpoint(s.dir, "recovery-point-offset-checkpoint", "orders", partitions, end))
	}
}

// writeSegment writes a log of about size bytes from the offset base on, with its indexes, and
// returns the offset behind it.
func writeSegment(dir string, base, size int64, noise io.Reader) (next int64, err error) {
	var index, timeIndex []byte
	next = base
	err = writeFile(filepath.Join(dir, segment(base, ".log")), func(w io.Writer) error {
		buffered := bufio.NewWriterSize(w, bufferBytes)
		var batch []byte
		sinceEntry := int64(0)
		for pos := int64(0); pos < size; pos += int64(len(batch)) {
			if batch, err = appendBatch(batch[:0], next, noise); err != nil {
				return err
			}
			next += recordsPerBatch
			if sinceEntry > indexIntervalSize {
				last := uint32(next - 1 - base)
				index = binary.BigEndian.AppendUint32(index, last)
				index = binary.BigEndian.AppendUint32(index, uint32(pos))
				timeIndex = binary.BigEndian.AppendUint64(timeIndex, uint64(timestamp(next-1)))
				timeIndex = binary.BigEndian.AppendUint32(timeIndex, last)
				sinceEntry = 0
			}
			sinceEntry += int64(len(batch))
			if _, err := buffered.Write(batch); err != nil {
				return err
			}
		}
		return buffered.Flush()
	})
	return next, errors.Join(err,
		os.WriteFile(filepath.Join(dir, segment(base, ".index")), index, 0o666),
		os.WriteFile(filepath.Join(dir, segment(base, ".timeindex")), timeIndex, 0o666))
}

// timestamp is that of the record at the offset.
func timestamp(offset int64) int64 { return firstTimestamp + offset }

// castagnoli is the polynomial of batches.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendBatch appends a batch of magic 2 with records of random values, not compressed, to dst.
//
//	0  i64 base offset        21 i16 attributes            43 i64 producer id
//	8  i32 bytes that follow  23 i32 last offset, relative 51 i16 producer epoch
//	12 i32 leader epoch       27 i64 first timestamp       53 i32 first sequence number
//	16 i8  magic              35 i64 largest timestamp     57 i32 number of records
//	17 u32 CRC-32C of all from byte 21 on                  61     records
//
// Source: "Record Batch" in Apache Kafka's documentation of its message format.
func appendBatch(dst []byte, base int64, noise io.Reader) ([]byte, error) {
	at := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, uint64(base))
	dst = binary.BigEndian.AppendUint32(dst, 0) // the length, once it is known
	dst = binary.BigEndian.AppendUint32(dst, 0) // the leader epoch
	dst = append(dst, 2, 0, 0, 0, 0)            // the magic, and room for the checksum
	dst = binary.BigEndian.AppendUint16(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, recordsPerBatch-1)
	dst = binary.BigEndian.AppendUint64(dst, uint64(timestamp(base)))
	dst = binary.BigEndian.AppendUint64(dst, uint64(timestamp(base+recordsPerBatch-1)))
	dst = binary.BigEndian.AppendUint64(dst, ^uint64(0)) // no producer id
	dst = binary.BigEndian.AppendUint16(dst, ^uint16(0))
	dst = binary.BigEndian.AppendUint32(dst, ^uint32(0))
	dst = binary.BigEndian.AppendUint32(dst, recordsPerBatch)
	var value [valueBytes]byte
	for i := range int64(recordsPerBatch) {
		if _, err := io.ReadFull(noise, value[:]); err != nil {
			return nil, err
		}
		dst = appendRecord(dst, i, value[:])
	}
	b := dst[at:]
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)-12))
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return dst, nil
}

// appendRecord appends a record without key and headers: its length, attributes, the differences of
// its timestamp and offset to those of the batch, and its value. Numbers are zigzag varints.
func appendRecord(dst []byte, delta int64, value []byte) []byte {
	body := []byte{0}
	body = binary.AppendVarint(body, delta)
	body = binary.AppendVarint(body, delta)
	body = binary.AppendVarint(body, -1)
	body = binary.AppendVarint(body, int64(len(value)))
	body = append(body, value...)
	body = binary.AppendVarint(body, 0)
	dst = binary.AppendVarint(dst, int64(len(body)))
	return append(dst, body...)
}

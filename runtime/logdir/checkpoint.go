package logdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Names of the files that a Kafka broker keeps beside its segments; a Fluss tablet server has the
// second too.
const (
	fileHighWatermark = "replication-offset-checkpoint"
	fileRecoveryPoint = "recovery-point-offset-checkpoint"
	fileLogStart      = "log-start-offset-checkpoint"
	fileCleaner       = "cleaner-offset-checkpoint"
	fileLeaderEpochs  = "leader-epoch-checkpoint"
	filePartition     = "partition.metadata"
	fileProperties    = "meta.properties"
)

// textBytesMax bounds what is read of a text file of the broker. Half a million partitions fit.
const textBytesMax = 64 << 20

// readText reads a small file as a whole.
func readText(dir vfs.Dir, name string) (text string, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := io.ReadAll(io.LimitReader(f, textBytesMax+1))
	if len(data) > textBytesMax {
		return "", fmt.Errorf("%s: more than %d bytes: %w", name, textBytesMax, tier.ErrDamaged)
	}
	return string(data), err
}

// checkpointLines reads a checkpoint of a broker or tablet server and calls add with the words of
// each entry, least to most of them:
//
//	0                      version
//	2                      number of entries
//	orders 0 4711          entries, words separated by one space
//	orders 1 4712
//
// Every line ends in a newline, the last one too, so that a file that was cut short is noticed. A
// broker makes the file empty before it first writes it: that is no entry.
// Source: CheckpointFile of Apache Kafka, and of Fluss. Errors name the line and wrap
// tier.ErrDamaged.
func checkpointLines(name, text string, least, most int, add func(words []string) error) error {
	wrong := func(line int, format string, args ...any) error {
		text := fmt.Sprintf(format, args...)
		return fmt.Errorf("%s:%d: %s: %w", name, line, text, tier.ErrDamaged)
	}
	if text == "" {
		return nil
	}
	version, rest, _ := strings.Cut(text, "\n")
	if version != "0" {
		return wrong(1, "version %.20q, where 0 is known", version)
	}
	count, rest, _ := strings.Cut(rest, "\n")
	want, err := strconv.ParseUint(count, 10, 31)
	if err != nil {
		return wrong(2, "want the number of entries, got %.20q", count)
	}
	line := 2
	for rest != "" {
		line++
		entry, after, ended := strings.Cut(rest, "\n")
		if !ended {
			return wrong(line, "the line does not end: the file is cut short")
		}
		rest = after
		got := strings.SplitN(entry, " ", most+1)
		switch {
		case len(got) >= least && len(got) <= most:
		case least == most:
			return wrong(line, "want %d words, got %.60q", most, entry)
		default:
			return wrong(line, "want %d or %d words, got %.60q", least, most, entry)
		}
		if err := add(got); err != nil {
			return wrong(line, "%v", err)
		}
	}
	if got := uint64(line - 2); got != want {
		return wrong(line, "the file has %d entries, and says that it has %d", got, want)
	}
	return nil
}

// parseOffsets reads a checkpoint of "topic partition offset" lines. A negative offset is Kafka's
// way to say that it is not known, and is left out.
func parseOffsets(name, text string) (map[tier.LogID]tier.Offset, error) {
	offsets := map[tier.LogID]tier.Offset{}
	err := checkpointLines(name, text, 3, 3, func(words []string) error {
		id := tier.LogID{Table: words[0], Name: words[1]}
		offset, err := strconv.ParseInt(words[2], 10, 64)
		if _, twice := offsets[id]; twice {
			return fmt.Errorf("%s stands there twice", id)
		}
		if id.Table == "" || !isPartition(id.Name) || err != nil {
			return fmt.Errorf("want topic, partition and offset, got %.60q",
				strings.Join(words, " "))
		}
		if offset >= 0 {
			offsets[id] = tier.Offset(offset)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return offsets, nil
}

// parseEpochs reads a partition's leader-epoch-checkpoint: lines of "epoch start", ascending.
func parseEpochs(name, text string) ([]tier.EpochStart, error) {
	var epochs []tier.EpochStart
	err := checkpointLines(name, text, 2, 2, func(words []string) error {
		epoch, errEpoch := strconv.ParseInt(words[0], 10, 32)
		start, errStart := strconv.ParseInt(words[1], 10, 64)
		if errEpoch != nil || errStart != nil || epoch < 0 || start < 0 {
			return fmt.Errorf("want epoch and start offset, got %.60q", strings.Join(words, " "))
		}
		e := tier.EpochStart{Epoch: tier.LeaderEpoch(epoch), Start: tier.Offset(start)}
		last := tier.EpochStart{Epoch: tier.NoLeaderEpoch}
		if n := len(epochs); n > 0 {
			last = epochs[n-1]
		}
		if e.Epoch <= last.Epoch || e.Start < last.Start {
			return fmt.Errorf("epoch %d from %d on does not ascend", e.Epoch, e.Start)
		}
		epochs = append(epochs, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return epochs, nil
}

// parseTopicID reads the topic's id out of a partition.metadata: lines of "key: value".
func parseTopicID(name, text string) (string, error) {
	id, version := "", ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch key {
		case "version":
			version = value
		case "topic_id":
			id = value
		}
	}
	if version != "0" || id == "" || strings.ContainsAny(id, " \t\r\x00") {
		return "", fmt.Errorf("%s: want version: 0 and topic_id: an id: %w", name, tier.ErrDamaged)
	}
	return id, nil
}

// checkpoints is what a broker says of all its logs. A nil map is one that could not be read: then
// nothing is known.
type checkpoints struct {
	highWatermark, recoveryPoint, logStart, cleaner map[tier.LogID]tier.Offset

	topicIDs bool // every partition has a topic id: meta.properties is of a broker with KRaft
	noted
}

// noted is how the reading of a source's checkpoints went.
type noted struct {
	program  string // that writes them
	whole    bool   // no checkpoint is unreadable; one that is missing is only not known
	problems []tier.Problem
}

// readCheckpoints reads the checkpoints in the root of a broker's log directory.
func readCheckpoints(root vfs.Dir) checkpoints {
	c := checkpoints{noted: noted{program: kafkaProgram, whole: true}}
	read := func(name, ifMissing string) map[tier.LogID]tier.Offset {
		return readCheckpoint(&c.noted, root, name, ifMissing, parseOffsets)
	}
	c.highWatermark = read(fileHighWatermark, neededToClose)
	c.recoveryPoint = read(fileRecoveryPoint, neededToClose)
	c.logStart = read(fileLogStart, "")
	c.cleaner = read(fileCleaner, "")
	if text, err := readText(root, fileProperties); err == nil {
		c.topicIDs = slices.Contains(strings.Split(text, "\n"), "version=1")
	}
	return c
}

// neededToClose is the consequence where a checkpoint is missing without which nothing is closed.
const neededToClose = "no segment is closed before it is known"

// readCheckpoint reads one checkpoint. If it is missing, that is a problem only where a consequence
// is given.
func readCheckpoint[K comparable](c *noted, root vfs.Dir, name, ifMissing string,
	parse func(name, text string) (map[K]tier.Offset, error)) map[K]tier.Offset {
	text, err := readText(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		if ifMissing != "" {
			c.problem(name, tier.CodeUnreadable, "the "+c.program+" has not written it: "+ifMissing)
		}
		return nil
	}
	var offsets map[K]tier.Offset
	if err == nil {
		offsets, err = parse(name, text)
	}
	if err != nil {
		c.whole = false
		c.problem(name, tier.CodeUnreadable, fmt.Sprintf("%v; nothing it says is believed until "+
			"the %s writes it anew", err, c.program))
		return nil
	}
	return offsets
}

func (c *noted) problem(name string, code tier.Code, text string) {
	c.problems = append(c.problems, problem(name, code, text))
}

// problem makes a Problem.
func problem(at string, code tier.Code, text string) tier.Problem {
	return tier.Problem{Path: path.Clean(at), Reason: tier.Reason{Code: code, Text: text}}
}

// isPartition reports whether s is a partition number as a broker writes it.
func isPartition(s string) bool {
	n, err := strconv.ParseUint(s, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == s
}

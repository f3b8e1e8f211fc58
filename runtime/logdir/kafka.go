package logdir

import (
	"path"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/logdir/kbatch"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Endings of a segment's files, beside those that Kafka shares with Fluss.
const (
	extTxnIndex = ".txnindex"
	extSnapshot = ".snapshot"
)

// kafka is the layout of a broker's log directory.
type kafka struct {
	rolled
	compacted func(table string) tier.Truth
}

func newKafka(c *Config) *kafka {
	compacted := c.Compacted
	if compacted == nil {
		compacted = func(string) tier.Truth { return tier.Unknown }
	}
	return &kafka{compacted: compacted, rolled: rolled{log: "partition", name: kafkaProgram,
		beside: []string{extIndex, extTimeIndex, extTxnIndex, extSnapshot}}}
}

// partitionOf splits the name of a partition's directory at its last dash. The broker's own topics,
// and what it is about to delete or is still moving, are none.
func partitionOf(name string) (tier.LogID, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 || !isPartition(name[i+1:]) || strings.HasPrefix(name, "__") {
		return tier.LogID{}, false
	}
	return tier.LogID{Table: name[:i], Name: name[i+1:]}, true
}

// places implements layout.
func (*kafka) places(_ vfs.Dir, id tier.LogID) ([]string, error) {
	if dir := partitionDir(id); dir != "" {
		return []string{dir}, nil
	}
	return nil, nil
}

// shows implements layout.
func (*kafka) shows(i vfs.Info) bool {
	_, ok := partitionOf(i.Name)
	return ok || i.Name == fileProperties
}

// wants implements layout.
func (*kafka) wants() string {
	return "meta.properties nor a partition: want the log directory of a Kafka broker"
}

// partitionDir is the directory of a log of a kafka source, below the source's; "" if there cannot
// be one.
func partitionDir(id tier.LogID) string {
	dir := id.Table + "-" + id.Name
	if back, ok := partitionOf(dir); !ok || back != id || strings.ContainsRune(dir, '/') {
		return ""
	}
	return dir
}

// judge implements layout.
func (k *kafka) judge(f *folder, at judging) tier.Scan {
	scan := tier.Scan{Incarnation: f.partition.incarnation, HasHighWatermark: true,
		Lineage: f.partition.lineage,
		Whole:   f.whole && at.broker.whole, Problems: f.problems}
	// What is not known is taken for 0: nothing is known to be below it.
	recoveryPoint := at.broker.recoveryPoint[f.id]
	scan.HighWatermark = at.broker.highWatermark[f.id]
	scan.SourceStart = at.broker.logStart[f.id]
	_, cleaned := at.broker.cleaner[f.id]
	switch k.compacted(f.id.Table) {
	case tier.Yes:
		scan.Compacted = true
	case tier.Unknown:
		scan.Compacted = cleaned
	}
	if at.broker.topicIDs && f.partition.incarnation == "" && f.whole {
		// A broker writes it a moment after it made the partition. Until then the log is not known
		// to be the one that it was.
		scan.Whole = false
		scan.Problems = append(slices.Clip(scan.Problems), problem(path.Join(f.dir, filePartition),
			tier.CodeRetry, "the broker has not written it yet: the topic's id is not known"))
		return scan
	}
	f.giveEnds(&scan, at, recoveryPoint)
	return scan
}

// inspect implements layout. Older brokers write no metadata.
func (*kafka) inspect(root vfs.Dir, dir string, infos []vfs.Info, l *listing) *partition {
	p := &partition{format: kbatch.Kafka}
	if _, found := infoOf(infos, fileLeaderEpochs); found {
		var err error
		if p.lineage, err = readEpochs(root, dir); err != nil {
			l.problem(fileLeaderEpochs, tier.CodeUnreadable, "%v", err)
		}
	}
	if _, found := infoOf(infos, filePartition); !found {
		return p
	}
	text, err := readText(root, path.Join(dir, filePartition))
	if err == nil {
		p.incarnation, err = parseTopicID(filePartition, text)
	}
	if err != nil {
		l.hide(filePartition, tier.CodeUnreadable, "%v", err)
		l.segments = nil // of whichever log they are
	}
	return p
}

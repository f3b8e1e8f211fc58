package tier

// CheckpointRadix is how many blocks of one level a manifest checkpoint of the next level stands
// for. Level 0 blocks are single entries.
const CheckpointRadix = 64

// CheckpointLevelMax is the highest level of checkpoints. A block of it stands for 4096 positions
// and has about 5 MB, which a daemon beside a broker can hold in memory; the next level would have
// hundreds. Reading gains nothing from more: it takes one request for 4096 segments.
const CheckpointLevelMax = 2

// CheckpointSpan is how many manifest positions a checkpoint of the level covers: 64 to its power.
func CheckpointSpan(level uint8) uint64 {
	span := uint64(1)
	for range level {
		span *= CheckpointRadix
	}
	return span
}

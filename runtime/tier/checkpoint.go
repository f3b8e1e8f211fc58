package tier

// CheckpointRadix is how many blocks of one level a manifest checkpoint of the next level stands
// for. Level 0 blocks are single entries.
const CheckpointRadix = 64

// CheckpointSpan is how many manifest positions a checkpoint of the level covers: 64 to its power.
func CheckpointSpan(level uint8) uint64 {
	span := uint64(1)
	for range level {
		span *= CheckpointRadix
	}
	return span
}

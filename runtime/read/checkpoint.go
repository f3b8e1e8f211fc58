package read

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// checkpointName is where a Kafka partition keeps its leader epochs: a version, a count, and lines
// of epoch and start offset.
const checkpointName = "leader-epoch-checkpoint"

// checkpoint reads the partition's own leader epochs; none where there is no such file, or one that
// is just being written: batches are what decides, and the next call sees it.
func (r *Reader) checkpoint(ctx context.Context, id tier.LogID) []tier.EpochStart {
	file, err := r.c.Local.Open(ctx, id, checkpointName)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }() // only read
	text, err := io.ReadAll(io.NewSectionReader(file, 0, wholeBytesMax))
	if err != nil {
		return nil
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 2 || lines[0] != "0" {
		return nil
	}
	var out []tier.EpochStart
	for _, line := range lines[2:] {
		var e tier.EpochStart
		if n, err := fmt.Sscanf(line, "%d %d", &e.Epoch, &e.Start); n == 2 && err == nil {
			out = append(out, e)
		}
	}
	return out
}

package read

import "github.com/tierd/tierd/runtime/tier"

// Epochs returns the leader epochs of the log's batches, ascending by offset, from the log start
// on: each with the first offset that it wrote. Behind the last one that tierd knows from batches
// come those that the source itself keeps on record. Empty where batches carry no epoch.
func (r *Reader) Epochs(id tier.LogID) ([]tier.EpochStart, error) {
	v, err := r.view(id)
	if err != nil || v.layout != tier.LayoutKafka {
		return nil, err
	}
	spans, err := r.remote(&v, false)
	if err != nil {
		return nil, err
	}
	var out []tier.EpochStart
	add := func(epoch tier.LeaderEpoch, start tier.Offset) {
		if n := len(out); epoch != tier.NoLeaderEpoch && (n == 0 || out[n-1].Epoch < epoch) {
			out = append(out, tier.EpochStart{Epoch: epoch, Start: max(start, v.start)})
		}
	}
	copied := tier.Offset(0)
	for _, s := range spans {
		for i, e := range s.copy.lineage {
			ends := i+1 < len(s.copy.lineage) && s.copy.lineage[i+1].Start <= max(s.Base, v.start)
			if e.Start < s.Next && !ends {
				add(e.Epoch, e.Start)
			}
		}
		copied = s.Next
	}
	if !v.local.Usable {
		return out, nil
	}
	for _, e := range v.local.Lineage {
		if e.Start >= copied || len(out) == 0 {
			add(e.Epoch, e.Start)
		}
	}
	return out, nil
}

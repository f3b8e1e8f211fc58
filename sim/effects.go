package sim

import "github.com/tierd/tierd/runtime/engine"

// subject is the log or the table that an effect is about; "" where it is about neither.
func subject(f engine.Effect) string {
	switch f := f.(type) {
	case engine.Open:
		return f.Log.String()
	case engine.Copy:
		return f.Log.String()
	case engine.Resolve:
		return f.Log.String()
	case engine.Delete:
		return f.Log.String()
	case engine.RecordHole:
		return f.Log.String()
	case engine.Publish:
		return f.Log.String()
	case engine.Checkpoint:
		return f.Log.String()
	case engine.Compare:
		return f.Log.String()
	case engine.OpenEpoch:
		return f.Log.String()
	case engine.MoveStart:
		return f.Log.String()
	case engine.Expire:
		return f.Log.String()
	case engine.Remove:
		return f.Log.String()
	case engine.Clear:
		return f.Log.String()
	case engine.ChangeTier:
		return f.Table
	case engine.Govern:
		return f.Table
	case engine.Pause:
		return f.Table
	}
	return ""
}

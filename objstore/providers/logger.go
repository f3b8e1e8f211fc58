package providers

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-kit/log"
	"github.com/go-kit/log/level"
)

// goKitLogger gives what thanos logs to a slog.Logger.
type goKitLogger struct{ to *slog.Logger }

func goKit(to *slog.Logger) log.Logger {
	if to == nil {
		return log.NewNopLogger()
	}
	return goKitLogger{to}
}

// Log implements log.Logger: keyvals are keys and values in turn; of the keys, "msg" and "level"
// have a meaning.
func (l goKitLogger) Log(keyvals ...any) error {
	var msg string
	at := slog.LevelInfo
	var attrs []slog.Attr
	for i := 0; i+1 < len(keyvals); i += 2 {
		switch key, value := fmt.Sprint(keyvals[i]), keyvals[i+1]; key {
		case "msg":
			msg = fmt.Sprint(value)
		case fmt.Sprint(level.Key()):
			at = slogLevel(value)
		default:
			attrs = append(attrs, slog.Any(key, value))
		}
	}
	l.to.LogAttrs(context.Background(), at, msg, attrs...)
	return nil
}

func slogLevel(value any) slog.Level {
	switch value {
	case level.DebugValue():
		return slog.LevelDebug
	case level.WarnValue():
		return slog.LevelWarn
	case level.ErrorValue():
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

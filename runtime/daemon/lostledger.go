package daemon

import (
	"context"
	"path/filepath"

	"github.com/tierd/tierd/objstore"
)

// tellOfLost warns of a ledger that this data_dir had before, where a new one begins: what was
// archived then is not read, does not expire and is not deleted, and nothing else would say so. It
// is a warning alone, since whoever begins anew may want just that.
func (d *Daemon) tellOfLost(ctx context.Context) {
	if len(d.ledger.Logs()) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.gen.Load().config.Copy.Timeout)
	defer cancel()
	owners, _, err := objstore.Owners(ctx, d.bucket)
	if err != nil {
		d.log.Debug("the store's ledgers", "err", err)
		return
	}
	me := d.owner(d.ledger.ID())
	for _, o := range owners {
		if o.Ledger != me.Ledger && o.Host == me.Host && o.DataDir == me.DataDir {
			d.log.Warn("the ledger is new, and the store has the archive of another that this data_dir "+
				"had: nothing of it is read, expires or is deleted", "ledger", o.Ledger,
				"to_go_on_with_it", "tierd rebuild --replace --ledger "+o.Ledger)
		}
	}
}

// tellOfNoAudit warns of a ledger that has logs and no deletion log beside it, not even an empty
// one: somebody took it away, or it was lost, and a chain that begins anew looks sound.
func (d *Daemon) tellOfNoAudit(dataDir string) {
	records, err := filepath.Glob(filepath.Join(dataDir, AuditDir, auditFiles))
	if logs := len(d.ledger.Logs()); err == nil && len(records) == 0 && logs > 0 {
		d.log.Warn("the deletion log is gone, and begins anew: what was deleted before is on no record",
			"dir", filepath.Join(dataDir, AuditDir))
	}
}

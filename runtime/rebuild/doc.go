// Package rebuild makes a new ledger of what the store and the sources have, after the old one was
// lost, was damaged, or turned out to be older than the manifests.
//
//	store: objects ------> which logs there are, and the highest tier epoch
//	store: manifests ----> all facts of a log, wherever they stand
//	store: files --------> adds of which an object is gone or wrong count no more
//	sources -------------> where a log lies, and which one it is
//	                          |
//	                          v
//	                    offsets.Builder: the copied offset, and all else that follows
//
// The new ledger never says more than the objects that were looked at show. What the old one knew
// and no manifest has is lost: accepted losses, how much the brake has counted, what governed a
// table, tombstones. Nothing that is not known is deleted for that reason: no orphan is collected
// for one orphan age after it (the ledger keeps the moment), the copies that have left their log
// get their whole grace once more, and a table begins in the state that its configuration says,
// never on its way to lose its remote data.
//
// # One position, several facts
//
// A ledger that was put back to an older state hands out positions for a second time, and may write
// a checkpoint that lacks what the newer one had published. Facts that stand in the manifest and
// that a reader of it would not see, or that share their position with another, are said once more
// at a new position, if they tell of offsets that no copy has which begins there or within; of two
// adds at one position the newer one stands. They are not where a clip or an epoch that came after
// them would be undone by it.
package rebuild
